/**
 * `record`: runs a command, and makes a bundle of everything that it looked at and changed. The command has the terminal; its exit
 * code is ours.
 */
import { accessSync, constants, existsSync, lstatSync, readdirSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { currentDirectory, isOurs } from '../engine/choose-target.ts'
import { homeOf, makeHome } from '../engine/home.ts'
import { supervise } from '../engine/run-child.ts'
import type { OpenOptions } from '../engine/savepoint.ts'
import { errnoWords, SavepointError } from '../errors/errors.ts'
import { headOf, WorkTreeFinder } from '../files/git-work-tree.ts'
import { monotonicMs } from '../model/monotonic.ts'
import { rawFromBytes, rawFromText, rawToText } from '../model/raw-path.ts'
import type { Inherited } from '../tracers/inherited.ts'
import { hasHelper, probeHelper } from '../tracers/probe-helper.ts'
import { BLOBS_NAME, MANIFEST_NAME } from './bundle-format.ts'
import { ignoredPaths } from './ignore-list.ts'
import {
  abandonedRecordings,
  endRecording,
  holdAbandoned,
  type RecordingStart,
  removeRecording,
  startRecording,
} from './recording.ts'
import type { RecordResult } from './results.ts'

/** Shorter lives of what the command leaves behind are not worth a word. */
const SAY_WAITING_MS = 1000

export interface RecordOptions extends Pick<OpenOptions, 'home' | 'env' | 'cwd' | 'onNotice' | 'onProgress'> {
  command: string[]
  /** The bundle. */
  output: string
  /** `changes`: not what is only looked at. */
  recorded: 'all' | 'changes'
  /** Replaces a bundle that is there. */
  force: boolean
  inherited: Inherited | undefined
  /** The command is about to begin: from here on it is told by its own means when something is wrong. */
  onStart?(): void
}

export async function record(options: RecordOptions): Promise<RecordResult> {
  const env = options.env ?? process.env
  const notice = options.onNotice ?? (() => {})
  if (!hasHelper())
    throw new SavepointError('unsupported', 'Cannot record a command here: build/savepoint-helper does not exist', {
      hint: 'Recording needs Linux, and `npm run build`',
    })
  const home = homeOf(options, env)
  const output = resolve(options.cwd ?? '.', options.output)
  const ignored = ignoredPaths(env, notice)
  checkOutput(output, home, options.force)
  const cwd = currentDirectory(home, options.cwd)
  makeHome(home, true)
  sayAbandoned(home, notice)
  const start: RecordingStart = {
    command: options.command.map(word => rawToText(rawFromText(word))),
    cwd: rawFromBytes(cwd),
    uid: process.getuid?.() ?? 0,
    gid: process.getgid?.() ?? 0,
    startedAt: Date.now(),
    recorded: options.recorded,
    ignored: [...new Set([...ignored, ...ownPaths(home, output).map(rawFromText)])],
    output,
    pid: process.pid,
  }
  await noteHead(start, env)
  const { directory, held } = startRecording(home, start)
  using _ = held
  try {
    const ended = run(options, start, directory, home, env, notice)
    // Loaded while the command runs; what is wrong with it is told when it is needed.
    import('./finish.ts').catch(() => {})
    await ended
  } catch (error) {
    // Nothing was begun.
    removeRecording(directory)
    throw await explain(error)
  }
  return await finish(directory, output, options)
}

/** Makes a bundle of a recording whose maker was killed. */
export async function finishAbandoned(
  name: string,
  options: Omit<RecordOptions, 'command' | 'inherited' | 'recorded'>,
): Promise<RecordResult> {
  const home = homeOf(options, options.env ?? process.env)
  const { directory, held } = holdAbandoned(home, name)
  using _ = held
  const output = resolve(options.cwd ?? '.', options.output)
  checkOutput(output, home, options.force)
  return await finish(directory, output, options)
}

async function finish(
  directory: string,
  output: string,
  options: Pick<RecordOptions, 'env' | 'onProgress'>,
): Promise<RecordResult> {
  const { finishRecording } = await import('./finish.ts')
  try {
    const result = await finishRecording({
      directory,
      output,
      env: options.env ?? process.env,
      onProgress: files => options.onProgress?.({ phase: 'writing', files, bytes: 0 }),
    })
    // What had no room is nowhere else.
    if (result.recording === undefined) removeRecording(directory)
    return result
  } catch (cause) {
    if (errnoWords(cause) === undefined) throw cause
    const name = basename(directory)
    throw new SavepointError('io.failed', `Cannot write the bundle ${output}: ${errnoWords(cause)}`, {
      hint: `Nothing of the recording is lost: savepoint record --finish ${name} -o OTHER writes it elsewhere`,
      data: { recording: name },
      cause,
    })
  }
}

async function run(
  options: RecordOptions,
  start: RecordingStart,
  directory: string,
  home: string,
  env: NodeJS.ProcessEnv,
  notice: (text: string) => void,
): Promise<void> {
  const began = monotonicMs()
  let stopWaiting = () => {}
  let left = 0
  options.onStart?.()
  const end = await supervise(options.command, {
    cwd: Buffer.from(start.cwd, 'latin1'),
    env,
    inherited: options.inherited,
    trace: {
      driver: 'seccomp',
      allowIoUring: false,
      protect: [home],
      watch: undefined,
      hold: undefined,
      spool: directory,
      record: {
        looks: start.recorded === 'all',
        ignored: start.ignored,
        onWaiting(count, abandon) {
          const giveUp = () => {
            left = Math.max(count, 1)
            abandon()
          }
          const timer = setTimeout(() => notice(waitingText(count)), SAY_WAITING_MS)
          process.once('SIGINT', giveUp)
          process.once('SIGTERM', giveUp)
          stopWaiting = () => {
            clearTimeout(timer)
            process.off('SIGINT', giveUp)
            process.off('SIGTERM', giveUp)
          }
        },
      },
      onEvent() {},
      onBatch() {},
      onHelperDied: () => notice('the tracer was killed: what the command does from here on is not recorded'),
      onStart() {},
    },
  }).finally(() => stopWaiting())
  endRecording(directory, {
    code: end.code ?? null,
    signal: end.signal ?? null,
    durationMs: Math.round(monotonicMs() - began),
    left,
  })
}

const waitingText = (count: number): string =>
  `the command has ended, but ${count === 1 ? 'a process' : `${Math.max(count, 1)} processes`} of it ${count === 1 ? 'goes' : 'go'} on: ` +
  'the bundle is written when all have ended; Ctrl-C writes it now'

async function noteHead(start: RecordingStart, env: NodeJS.ProcessEnv): Promise<void> {
  const root = new WorkTreeFinder().rootOf(`${start.cwd === '/' ? '' : start.cwd}/x`)
  if (root !== undefined) start.head = { root, commit: (await headOf(root, env)) ?? null }
}

function sayAbandoned(home: string, notice: (text: string) => void): void {
  for (const { directory, start } of abandonedRecordings(home))
    notice(
      `an earlier recording (${start.command[0]}) was interrupted, or had no room: savepoint record --finish ${basename(directory)} -o BUNDLE writes what there is of it`,
    )
}

/** Before the command starts: afterwards it would be too late. */
function checkOutput(output: string, home: string, force: boolean): void {
  const cannot = (why: string, hint: string, cause?: unknown) =>
    new SavepointError('command.failed-to-start', `Cannot record into ${output}: ${why}`, { hint, cause })
  if (isOurs(home, rawFromText(output))) throw cannot('it belongs to Savepoint itself', 'Name a directory elsewhere')
  const stat = statOf(output)
  if (stat) {
    const isBundle = stat.isDirectory() && existsSync(join(output, MANIFEST_NAME))
    if (!isBundle) throw cannot('something else is there', 'Name a directory that does not exist yet')
    if (!force) throw cannot('there is a bundle already', 'Name another one, or replace it with --force')
    const others = readdirSync(output).filter(name => name !== MANIFEST_NAME && name !== BLOBS_NAME)
    if (others.length > 0) throw cannot(`it also holds ${others[0]}`, 'Name a directory that does not exist yet')
  }
  try {
    if (!statSync(dirname(output)).isDirectory()) throw cannot('what is above it is no directory', 'Name another place')
    accessSync(dirname(output), constants.W_OK | constants.X_OK)
  } catch (error) {
    if (error instanceof SavepointError) throw error
    throw cannot(errnoWords(error) ?? String(error), 'Name a place where you may write', error)
  }
}

function statOf(path: string) {
  try {
    return lstatSync(path)
  } catch {
    // What is wrong with the place is told by the look at what is above.
    return undefined
  }
}

/** Neither what we keep meanwhile nor what we write is the command's. */
const ownPaths = (home: string, output: string): string[] => [
  home,
  realpathSync(home),
  output,
  join(realpathSync(dirname(output)), basename(output)),
]

/** What the start failed of: the tracer, or the command. */
async function explain(error: unknown): Promise<unknown> {
  if (!(error instanceof SavepointError)) return error
  const probe = probeHelper('seccomp')
  if (!probe.works) {
    return new SavepointError('unsupported', `Cannot record a command here: ${probe.detail}`, {
      hint: 'A command that is already traced (inside of savepoint run, or of another recording) cannot be recorded as well: record from outside',
      cause: error,
    })
  }
  const { message, hint, cause } = error
  return new SavepointError('command.failed-to-start', message, { hint, cause })
}
