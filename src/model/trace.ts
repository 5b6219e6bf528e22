/** What a run executed and changed, as it is kept. Times are milliseconds since 1970, with fractions. */
import type { Raw } from './raw-path.ts'

export interface Execution {
  run: string
  /** Counts from 1 within the run. */
  id: number
  at: number
  pid: number
  ppid: number
  /** The execution that started it; 0: none that is known. */
  parent: number
  depth: number
  /** The execution of the same process that it took the place of. */
  replaces: number | undefined
  program: Raw
  argv: Raw[]
  /** Not all arguments were kept. */
  truncated: boolean
  cwd: Raw
  /** Undefined while it runs, or when its end was not seen. */
  endedAt: number | undefined
  exitCode: number | undefined
  signal: string | undefined
}

export interface FileEvent {
  id: number
  run: string
  at: number
  /** write, create, delete, rename, exchange, link, attributes, truncate, inherited. */
  op: string
  /** Relative to the target; undefined when it lies outside. */
  path: Raw | undefined
  to: Raw | undefined
  /** 0 when it cannot be told. */
  exec: number
  pid: number
  existed: boolean
  directory: boolean
}

export const hasFailed = ({ exitCode, signal }: Execution): boolean =>
  signal !== undefined || (exitCode !== undefined && exitCode !== 0)
