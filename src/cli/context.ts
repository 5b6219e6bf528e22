/**
 * What a command works with: the options common to all, where its results and remarks go, and the engine, which is
 * loaded only when a command asks for it.
 */
import type { DoctorResult, OpenOptions, Savepoint } from '../index.ts'
import { type Cancellation, createCancellation } from './cancellation.ts'
import { createOutput, type Output } from './output.ts'
import { choosePager, throughPager } from './pager.ts'
import { createProgress, type ProgressLine, silentProgress } from './progress.ts'
import { createStyle, type Style, wantsColour } from './style.ts'
import { hasComeBack, workingDirectory } from './working-directory.ts'

export interface CommonOptions {
  target?: string
  adopt?: string
  home?: string
  json: boolean
  quiet: boolean
  color: boolean
  pager: boolean
}

export interface Context {
  readonly options: CommonOptions
  readonly style: Style
  readonly now: number
  readonly output: Output
  /** Columns of the terminal, or what git assumes without one. */
  readonly width: number
  readonly cancellation: Cancellation | undefined
  line(text?: string): void
  /** A listing with --quiet: what each element is named by, and nothing else. */
  lines(names: readonly string[]): void
  /** The result for programs: the only thing that stdout gets with --json. */
  json(value: unknown): void
  /** One line on stderr that is not a result; silent with --quiet. */
  notice(text: string): void
  /** Runs `body` with a pager when stdout is a terminal. */
  paged(body: (output: Output) => Promise<void> | void): Promise<void>
  open(options?: OpenOptions): Promise<Savepoint>
  doctor(): Promise<DoctorResult>
  close(): void
}

/** Of a terminal that does not say, and without one. */
const assumedColumns = 80

export function createContext(options: CommonOptions, cancellable: boolean): Context {
  const progress = progressFor(options)
  const output = createOutput(process.stdout, progress.erase)
  const errors = createOutput(process.stderr, progress.erase)
  const directory = workingDirectory()
  const colour = wantsColour(process.stdout, process.env, options.color)
  let style = createStyle(colour)
  let cancellation: Cancellation | undefined
  let opened: Savepoint | undefined

  const notice = (text: string) => {
    if (options.quiet) return
    errors.write(options.json ? `${JSON.stringify({ notice: text })}\n` : `savepoint: ${text}\n`)
  }
  const engineOptions = (): OpenOptions => ({
    // Without it the engine asks the system, which knows names that are not UTF-8.
    cwd: directory.gone ? directory.path : undefined,
    target: options.target,
    adopt: options.adopt,
    home: options.home,
    env: process.env,
    onProgress: state => progress.update(state),
    onNotice: notice,
    signal: cancellation?.signal,
  })
  return {
    options,
    output,
    notice,
    get style() {
      return style
    },
    now: Date.now(),
    width: process.stdout.columns || assumedColumns,
    get cancellation() {
      return cancellation
    },
    line: (text = '') => output.write(`${text}\n`),
    lines: names => output.write(names.map(name => `${name}\n`).join('')),
    json: value => output.write(`${JSON.stringify(value, null, 2)}\n`),
    async paged(body) {
      const terminal = process.stdout.isTTY && options.pager && process.env.TERM !== 'dumb'
      const pager = terminal ? choosePager(process.env) : undefined
      progress.erase()
      if (pager) await throughPager(pager, process.env, body)
      else await body(output)
    },
    async open(extra = {}) {
      if (cancellable) {
        cancellation ??= createCancellation(() => notice('stopping at the next safe point; Ctrl-C again stops at once'))
      }
      const engine = await import('../index.ts')
      opened = await engine.open({ ...engineOptions(), ...extra })
      style = createStyle(colour, opened.subdirectory)
      if (opened.foundAbove && options.target === undefined) notice(`using the timeline of ${opened.target} (above)`)
      return opened
    },
    async doctor() {
      const engine = await import('../index.ts')
      return engine.doctor(engineOptions())
    },
    close() {
      progress.erase()
      opened?.close()
      opened = undefined
      cancellation?.dispose()
      if (hasComeBack(directory)) {
        notice('this shell still stands in the directory that was removed; enter the new one with: cd "$PWD"')
      }
    },
  }
}

function progressFor(options: CommonOptions): ProgressLine {
  if (!process.stderr.isTTY || options.quiet || options.json || process.env.TERM === 'dumb') return silentProgress
  return createProgress({
    write: text => void process.stderr.write(text),
    columns: () => process.stderr.columns || assumedColumns,
    now: () => performance.now(),
  })
}
