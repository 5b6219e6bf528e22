/** What labels and tags may look like, so that none can be mistaken for an id. */
import { SavepointError } from '../errors/errors.ts'

const MAX_LABEL = 200
const MAX_TAG = 100
const reserved = /^(snap|run|op)_|^HEAD$|^@$/

export function checkLabel(label: string): void {
  if (label.trim() === '' || label.length > MAX_LABEL || /[\x00-\x1f\x7f]/.test(label)) {
    throw new SavepointError(
      'name.invalid',
      `Cannot use this label: it must have 1 to ${MAX_LABEL} characters without control characters`,
      { hint: 'For example: `savepoint snapshot --label "before the upgrade"`' },
    )
  }
  refuseReserved('label', label)
}

export function checkTag(tag: string): void {
  if (!/^[\p{L}\p{N}][\p{L}\p{N}._/+-]*$/u.test(tag) || tag.length > MAX_TAG) {
    throw new SavepointError(
      'name.invalid',
      `Cannot use "${tag}" as a tag: letters, digits and . _ - + / are allowed, at most ${MAX_TAG}`,
      {
        hint: 'It must begin with a letter or a digit',
      },
    )
  }
  refuseReserved('tag', tag)
}

function refuseReserved(what: string, name: string): void {
  if (!reserved.test(name)) return
  throw new SavepointError('name.invalid', `Cannot use "${name}" as a ${what}: it could be mistaken for an id`, {
    hint: 'Names beginning with snap_, run_ or op_, HEAD and @ are taken',
  })
}
