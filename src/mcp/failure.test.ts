import { describe, expect, it } from 'vitest'
import { SavepointError } from '../errors/errors.ts'
import { failureOf, failureText } from './failure.ts'

const first = (text: string) => text.split('\n')[0]
const last = (text: string) => text.split('\n').at(-1)

describe('a failed call', () => {
  it('says that nothing was executed where that is certain', () => {
    const unknown = new SavepointError('snapshot.unknown', 'Cannot find x', { hint: '`savepoint snapshots` lists all' })
    expect(failureText(unknown, false)).toBe(
      'NOTHING WAS EXECUTED: Cannot find x (snapshot.unknown).\nThere is no result: do not assume one.\nNext: snapshots_list lists all',
    )
  })

  it('does not say so of a change that may have begun', () => {
    const full = new SavepointError('disk.full', 'Cannot go on: no space')
    expect(first(failureText(full, false))).toBe('NOT COMPLETED: Cannot go on: no space (disk.full).')
    expect(last(failureText(full, false))).toMatch(
      /^Next: call snapshots_log and snapshots_changes .*; then tell the user/,
    )
    expect(first(failureText(full, true))).toMatch(/^NOTHING WAS EXECUTED/)
  })

  it('is told whatever was thrown, and always ends with what to do', () => {
    for (const thrown of [
      new TypeError('x'),
      'text',
      Object.assign(new Error('EIO: i/o'), { code: 'EIO' }),
      AbortSignal.abort().reason,
    ]) {
      const { isError, content } = failureOf(thrown, true)
      expect(isError).toBe(true)
      expect(first(content[0]!.text)).toMatch(/^NOTHING WAS EXECUTED: Cannot /)
      expect(last(content[0]!.text)).toMatch(/^Next: \S/)
    }
    expect(failureOf(new TypeError('x'), false)._meta['savepoint/error']).toMatchObject({ code: 'bug', exit: 70 })
  })

  it.each([
    ['`savepoint tag` lists the tags', 'snapshots_log lists the tags'],
    ['`savepoint tag --delete v1`', 'snapshots_tag {name: "v1", delete: true}'],
    ['`savepoint snapshot --force`', '`savepoint snapshot --force`'],
    ['`savepoint rollback SNAP --to DIR`', '`savepoint rollback SNAP --to DIR`'],
    ['`savepoint runs` lists them', 'the list of resources (savepoint://runs/…) lists them'],
    ['`savepoint undo --all` takes all', 'snapshots_undo {all: true} takes all'],
    ['`savepoint snapshot --label "a b"`', 'snapshots_create {name: "a b"}'],
    ['`savepoint rollback snap_abcd2345` goes back', 'snapshots_rollback {checkpoint: "snap_abcd2345"} goes back'],
    ['`savepoint rollback run_a2 --keep-running`', 'snapshots_rollback {checkpoint: "run_a2"}'],
    ['`savepoint delete snap_a2`', 'snapshots_delete {checkpoint: "snap_a2"}'],
    ['`savepoint delete -t DIR SNAP` there', '`savepoint delete -t DIR SNAP` there'],
    ['`savepoint undo` in another terminal', '`savepoint undo` in another terminal'],
    ['`savepoint operations` shows it', 'the resource savepoint://events?kind=operation shows it'],
  ])('names what does the same: %s', (hint, said) =>
    expect(last(failureText(new SavepointError('tag.unknown', 'Cannot z', { hint }), true))).toBe(`Next: ${said}`),
  )

  it('names them to programs, too', () => {
    const hint = '`savepoint log` shows them'
    const { _meta } = failureOf(new SavepointError('operation.none', 'Cannot undo', { hint }), false)
    expect(_meta['savepoint/error'].hint).toBe('snapshots_log shows them')
  })

  it('keeps commands that are no tools', () => {
    const error = new SavepointError('failed', 'Cannot y', {
      hint: '`savepoint doctor` says more, `savepoint undo` takes it back',
    })
    expect(failureText(error, true)).toContain('Next: `savepoint doctor` says more, snapshots_undo takes it back')
  })
})
