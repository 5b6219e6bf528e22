/** One call of a tool: the timeline is opened for it and closed after it, so that nothing is held while the agent thinks. */
import { join } from 'node:path'
import { checkInput, findOperation } from '../api/table.ts'
import type { OpenOptions, Savepoint } from '../index.ts'
import { withToolNames } from './tool-names.ts'

export class Session {
  /** What the engine says beside its results, with tools for commands. */
  readonly notices: string[] = []
  /** Where this process stands in the target, '' at its root: what changes files reaches no further unless told. */
  subdirectory = ''
  readonly #options: OpenOptions
  #opened: Savepoint | undefined

  constructor(options: OpenOptions) {
    this.#options = options
  }

  /** Several operations of one call share what the first of them opened. */
  call = async <T>(name: string, input: Record<string, unknown> = {}): Promise<T> => {
    const operation = findOperation(name)
    const checked = checkInput(operation, withoutUndefined(input))
    const savepoint = await this.#open(operation.opens?.(checked) ?? {})
    return (await operation.handler(savepoint, fromTarget(savepoint, checked))) as T
  }

  close(): void {
    this.#opened?.close()
    this.#opened = undefined
  }

  async #open(extra: OpenOptions): Promise<Savepoint> {
    if (this.#opened) return this.#opened
    const { open, showPath } = await import('../index.ts')
    const savepoint = await open({
      ...this.#options,
      ...extra,
      // What comes after the first may want more than a list.
      listsOnly: false,
      onNotice: text => void this.notices.push(withToolNames(text)),
    })
    this.#opened = savepoint
    this.subdirectory = showPath(savepoint.subdirectory)
    return savepoint
  }
}

const withoutUndefined = (input: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined))

/** Paths of operations start at the target, wherever this process was started. A target whose name is escaped is not one to join. */
function fromTarget({ target }: Savepoint, input: Record<string, unknown>): Record<string, unknown> {
  if (target.includes('\\')) return input
  const absolute = (path: unknown) => (String(path).startsWith('/') ? path : join(target, String(path)))
  return {
    ...input,
    ...(input.path === undefined ? {} : { path: absolute(input.path) }),
    ...(Array.isArray(input.paths) ? { paths: input.paths.map(absolute) } : {}),
  }
}
