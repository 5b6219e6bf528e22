/**
 * What a command works with: the options common to all, where its results and remarks go, and the engine, which is
 * loaded only when a command asks for it.
 */
import { join, relative } from 'node:path'
import type { DoctorResult, OpenOptions, RunResult, Savepoint } from '../index.ts'
import { monotonicMs } from '../model/monotonic.ts'
import { type Raw, showPath } from '../model/raw-path.ts'
import { quoteCommand } from '../model/shell-quote.ts'
import { type Cancellation, createCancellation } from './cancellation.ts'
import { type GivenTarget, givenTarget, leadsElsewhere } from './given-target.ts'
import { inherited } from './inherited.ts'
import { createOutput, type Output } from './output.ts'
import { choosePager, throughPager } from './pager.ts'
import { createProgress, type ProgressLine, silentProgress } from './progress.ts'
import { createStyle, type Style, wantsColour } from './style.ts'
import { showLines } from './text.ts'
import { whereTheShellIs, workingDirectory } from './working-directory.ts'

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
  /** "savepoint" with the options that chose target and store; the target by where its path led, should that lead elsewhere by now. */
  readonly program: string
  /** The time at which it is asked: before a result is shown, a recovery may take long, and is dated when it ends. */
  readonly now: number
  readonly output: Output
  /** Of stderr. */
  readonly errors: Output
  /** Columns of the terminal, or what git assumes without one. */
  readonly width: number
  readonly cancellation: Cancellation | undefined
  /** A path of the target as a word of a command that is typed here. */
  operand(path: Raw): string
  line(text?: string): void
  /** A listing with --quiet: what each element is named by, and nothing else. */
  lines(names: readonly string[]): void
  /** The result for programs: the only thing that stdout gets with --json. */
  json(value: unknown): void
  /** One line on stderr that is not a result; silent with --quiet, unless it is an alarm. */
  notice(text: string, isAlarm?: boolean): void
  /** Runs `body` with a pager when stdout is a terminal. */
  paged(body: (output: Output) => Promise<void> | void): Promise<void>
  open(options?: OpenOptions): Promise<Savepoint>
  /** For those who open it themselves. Of a command that can be cancelled, `signal` says when it is. */
  engineOptions(): OpenOptions
  /** Opens for a verb that only looks: a savepoint.yaml that is wrong, perhaps by what one wants to see, does not stop it. */
  look(extra?: OpenOptions): Promise<Savepoint>
  /** The same for one that only lists what there is. */
  list(extra?: OpenOptions): Promise<Savepoint>
  /** Runs a command although there is nothing to record it in, because of `cause`. */
  runUnrecorded(command: string[], cause: Error): Promise<RunResult>
  /** What is to be known of a target whose path leads elsewhere by now. */
  relinkedText(): string | undefined
  /** Whether `undo` would stop a run, instead of taking back what was done last. */
  undoStops(): boolean
  doctor(): Promise<DoctorResult>
  close(): void
}

function stopNotice(signal: NodeJS.Signals, isUnstoppable: boolean): string {
  const again = `${signal === 'SIGINT' ? 'Ctrl-C again' : `a second ${signal}`} stops at once`
  return isUnstoppable
    ? `it has begun and will be completed; ${again}, and a later command completes it`
    : `stopping at the next safe point; ${again}`
}

const waitNotice = (what: string, limitMs: number): string =>
  `waiting for \`${what}\` to end, ${limitMs / 1000} s at most`

/** Of a terminal that does not say, and without one. */
const assumedColumns = 80

export function createContext(options: CommonOptions, cancellable: boolean): Context {
  const progress = progressFor(options)
  const output = createOutput(process.stdout, progress.erase)
  const errors = createOutput(process.stderr, progress.erase)
  const directory = workingDirectory()
  const colour = wantsColour(process.stdout, process.env, options.color)
  const given = givenTarget(options.target)
  const programNow = () => programOf(options, given)
  let style = createStyle(colour, '', programNow())
  let cancellation: Cancellation | undefined
  let opened: Savepoint | undefined
  let isUnstoppable = false

  const noticeLine = (remark: string, isAlarm: boolean): string => {
    if (options.quiet && !isAlarm) return ''
    const text = withProgram(remark, programNow())
    return options.json ? `${JSON.stringify({ notice: text })}\n` : `savepoint: ${showLines(text)}\n`
  }
  const notice = (remark: string, isAlarm = false) => {
    const line = noticeLine(remark, isAlarm)
    if (line !== '') errors.write(line)
  }
  const listen = () => {
    if (cancellable) cancellation ??= createCancellation(name => notice(stopNotice(name, isUnstoppable)))
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
    signalNote: (what, limitMs) => noticeLine(waitNotice(what, limitMs), false),
    onUnstoppable: value => {
      isUnstoppable = value
    },
  })
  const context: Context = {
    options,
    get program() {
      return programNow()
    },
    output,
    errors,
    notice,
    get style() {
      return style
    },
    get now() {
      return Date.now()
    },
    width: process.stdout.columns || assumedColumns,
    get cancellation() {
      return cancellation
    },
    operand: path => {
      const isInside = opened && !relative(opened.target, directory.path).startsWith('..')
      return isInside ? style.path(path) : join(opened?.target ?? '.', showPath(path))
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
    engineOptions() {
      listen()
      return engineOptions()
    },
    async open(extra = {}) {
      listen()
      const engine = await import('../index.ts')
      opened = await engine.open({ ...engineOptions(), ...extra, untilExit: true })
      style = createStyle(colour, opened.subdirectory, programNow(), context.undoStops, context.operand)
      if (opened.foundAbove && options.target === undefined) notice(`using the timeline of ${opened.target} (above)`)
      return opened
    },
    look: extra => context.open({ withoutBrokenConfig: true, ...extra }),
    list: extra => context.look({ listsOnly: true, ...extra }),
    async runUnrecorded(command, cause) {
      cancellation?.ignore()
      const engine = await import('../index.ts')
      return engine.runUnrecorded(command, cause, { ...engineOptions(), inherited })
    },
    relinkedText() {
      const now = given && leadsElsewhere(given)
      if (now === undefined || !opened) return undefined
      const log = `${programOf({ ...options, target: opened.target })} log`
      return `${given!.path} leads to ${now} now, and what is protected is ${opened.target}: ${log}`
    },
    undoStops: () => opened?.undoStops() === true,
    async doctor() {
      const engine = await import('../index.ts')
      return engine.doctor(engineOptions())
    },
    close() {
      progress.erase()
      opened?.close()
      opened = undefined
      cancellation?.dispose()
      const text = whereTheShellIs(directory)
      if (text !== undefined) notice(text)
    },
  }
  return context
}

/** What a user who chose target or store writes before each verb. */
function programOf({ target, home }: CommonOptions, given?: GivenTarget): string {
  const named = target !== undefined && given && leadsElsewhere(given) !== undefined ? given.led : target
  const choice = [...(named === undefined ? [] : ['-t', named]), ...(home === undefined ? [] : ['--home', home])]
  return quoteCommand(['savepoint', ...choice])
}

/** Commands in hints and remarks of the engine, which does not know how it was called. */
export const withProgram = (text: string, program: string): string =>
  text.includes(' -t ') ? text : text.replace(/(?<![\w/.-])savepoint (?=[a-z])/g, `${program} `)

function progressFor(options: CommonOptions): ProgressLine {
  if (!process.stderr.isTTY || options.quiet || options.json || process.env.TERM === 'dumb') return silentProgress
  return createProgress({
    write: text => void process.stderr.write(text),
    columns: () => process.stderr.columns || assumedColumns,
    now: monotonicMs,
  })
}
