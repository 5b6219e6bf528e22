/**
 * What a program hands to the library is checked where it comes in, so that a slip of its own is a SavepointError that names
 * it, and not a TypeError from somewhere inside, or an option that is dropped in silence. TypeScript sees most of it earlier;
 * programs in plain JavaScript have only this.
 */
import { SavepointError } from '../errors/errors.ts'
import type { OpenOptions, Savepoint } from './savepoint.ts'

type Kind = 'text' | 'texts' | 'flag' | 'number' | 'function' | 'any'
/** `?` after a kind: may be left out. An object: options by name, all of which may be. */
type Argument = `${Kind}${'' | '?'}` | Record<string, Kind>

type Methods = {
  [K in keyof Savepoint]: Savepoint[K] extends (...args: never[]) => unknown ? K : never
}[keyof Savepoint]

interface Signature {
  takes: Argument[]
  /** Throws at once instead of rejecting. */
  sync?: true
}

/** All options of a method, which the compiler counts. */
const optionsOf = <M extends Methods, I extends number>(
  kinds: Record<keyof NonNullable<Parameters<Savepoint[M]>[I]>, Kind>,
): Record<string, Kind> => kinds

const live = { keepRunning: 'flag', restart: 'flag' } as const

const signatures: Record<Exclude<Methods, 'close'>, Signature> = {
  snapshot: {
    takes: [optionsOf<'snapshot', 0>({ label: 'text', type: 'text', run: 'text', turn: 'any', onlyIfChanged: 'flag' })],
  },
  snapshots: { takes: [optionsOf<'snapshots', 0>({ run: 'text' })], sync: true },
  find: { takes: ['text'], sync: true },
  head: { takes: [], sync: true },
  log: { takes: [], sync: true },
  branches: { takes: [], sync: true },
  version: { takes: [], sync: true },
  isInPlace: { takes: [], sync: true },
  isInterrupted: { takes: [], sync: true },
  undoStops: { takes: [], sync: true },
  beingTaken: { takes: [], sync: true },
  ownRun: { takes: [], sync: true },
  settle: { takes: [] },
  nativeUsage: { takes: ['text'], sync: true },
  status: { takes: [] },
  diff: { takes: [optionsOf<'diff', 0>({ from: 'text', to: 'text', paths: 'texts' })] },
  changes: { takes: [] },
  history: { takes: ['text'] },
  coverage: { takes: ['text'] },
  coverages: { takes: ['texts'] },
  mountsIn: { takes: ['text'], sync: true },
  snapshotChanges: { takes: ['text'], sync: true },
  entry: { takes: ['text', 'text'], sync: true },
  file: { takes: ['text', 'text'], sync: true },
  read: { takes: ['text', 'text'], sync: true },
  isKept: { takes: ['text'], sync: true },
  rollback: {
    takes: [
      'text',
      optionsOf<'rollback', 1>({
        paths: 'texts',
        dryRun: 'flag',
        to: 'text',
        withoutGit: 'flag',
        noSafety: 'flag',
        run: 'text',
        all: 'flag',
        native: 'flag',
        ...live,
      }),
    ],
  },
  revert: { takes: ['text', optionsOf<'revert', 1>({ from: 'text', dryRun: 'flag' })] },
  undo: { takes: [optionsOf<'undo', 0>({ all: 'flag', dryRun: 'flag', ...live })] },
  redo: { takes: [optionsOf<'redo', 0>({ all: 'flag', dryRun: 'flag' })] },
  tags: { takes: [], sync: true },
  tag: { takes: ['text', 'text?'], sync: true },
  deleteTag: { takes: ['text'], sync: true },
  delete: { takes: ['texts'] },
  compact: { takes: ['texts', optionsOf<'compact', 1>({ label: 'text' })] },
  prune: { takes: [optionsOf<'prune', 0>({ keep: 'number', dryRun: 'flag', run: 'text' })] },
  operations: { takes: [], sync: true },
  runs: { takes: [], sync: true },
  trace: { takes: ['text?'], sync: true },
  followTrace: { takes: ['text?', 'function', optionsOf<'followTrace', 2>({ signal: 'any' })] },
  subscribe: { takes: ['function', optionsOf<'subscribe', 1>({ signal: 'any', kind: 'texts', cursor: 'text' })] },
  processes: { takes: [], sync: true },
  signalProcess: {
    takes: ['number', optionsOf<'signalProcess', 1>({ start: 'number', signal: 'text' })],
    sync: true,
  },
  why: { takes: ['text', optionsOf<'why', 1>({ limit: 'number' })], sync: true },
  events: {
    takes: [
      optionsOf<'events', 0>({
        kind: 'texts',
        run: 'text',
        since: 'text',
        limit: 'number',
        cursor: 'text',
        reverse: 'flag',
      }),
    ],
    sync: true,
  },
  gc: { takes: [] },
  verify: { takes: [optionsOf<'verify', 0>({ repair: 'flag' })] },
  purge: { takes: ['text'] },
  leftByPurge: { takes: ['text'], sync: true },
  purgeText: { takes: ['text'] },
  exportSnapshot: { takes: ['text', 'text', optionsOf<'exportSnapshot', 2>({ withKept: 'flag' })] },
  importStates: { takes: ['text', 'function'] },
  importArchive: { takes: ['text', optionsOf<'importArchive', 1>({ label: 'text', force: 'flag' })] },
  run: {
    takes: [
      optionsOf<'run', 0>({
        command: 'texts',
        tracer: 'text',
        allowIoUring: 'flag',
        allowSudo: 'flag',
        inherited: 'any',
        unprotected: 'flag',
        onStart: 'function',
        onLaunch: 'function',
        stop: 'any',
        face: 'function',
        onFailure: 'any',
      }),
    ],
  },
  trust: { takes: [optionsOf<'trust', 0>({ dryRun: 'flag' })] },
}

const openTakes: Record<keyof OpenOptions, Kind> = {
  cwd: 'text',
  target: 'text',
  home: 'text',
  env: 'any',
  create: 'flag',
  provisional: 'flag',
  wholeStore: 'flag',
  force: 'flag',
  adopt: 'text',
  leaveUnread: 'flag',
  listsOnly: 'flag',
  leaveBeyond: 'flag',
  leaveInterrupted: 'flag',
  leaveStep: 'flag',
  backend: 'text',
  withoutBrokenConfig: 'flag',
  upToDate: 'flag',
  repair: 'flag',
  makeRoom: 'flag',
  untilExit: 'flag',
  onProgress: 'function',
  onNotice: 'function',
  signal: 'any',
  signalNote: 'function',
  onUnstoppable: 'function',
  now: 'function',
}

export function checkOpenOptions(options: unknown): void {
  if (typeof options === 'string')
    throw new SavepointError('usage', 'Cannot open: a path is not what open() takes', { hint: 'open({ cwd: PATH })' })
  checkOptions('open', openTakes, options)
}

/** The same object, whose methods say what is wrong with a call, also after `close`. */
export function withCheckedCalls(savepoint: Savepoint): Savepoint {
  let isClosed = false
  for (const [name, { takes, sync }] of Object.entries(signatures)) {
    const method = savepoint[name as Methods] as (...args: unknown[]) => unknown
    const check = (args: unknown[]) => {
      if (isClosed)
        throw new SavepointError('usage', `Cannot call ${name}: this Savepoint is closed`, {
          hint: 'open() another one',
        })
      checkArguments(name, takes, args)
    }
    const checked = sync
      ? (...args: unknown[]) => {
          check(args)
          return method(...args)
        }
      : async (...args: unknown[]) => {
          check(args)
          return method(...args)
        }
    Object.assign(savepoint, { [name]: checked })
  }
  const { close } = savepoint
  savepoint.close = () => {
    if (!isClosed) close()
    isClosed = true
  }
  return savepoint
}

function checkArguments(name: string, takes: Argument[], args: unknown[]): void {
  for (const [i, argument] of takes.entries()) {
    const value = args[i]
    if (typeof argument === 'object') checkOptions(name, argument, value)
    else if (!fits(value, argument.replace('?', '') as Kind) && !(argument.endsWith('?') && value === undefined))
      throw wrong(name, `argument ${i + 1}`, argument.replace('?', '') as Kind)
  }
}

function checkOptions(name: string, known: Record<string, Kind>, value: unknown): void {
  if (value === undefined) return
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new SavepointError('usage', `Cannot call ${name}: its options must be an object`, {
      hint: `It takes: ${Object.keys(known).join(', ')}`,
    })
  for (const [option, given] of Object.entries(value)) {
    if (given === undefined) continue
    const kind = known[option]
    if (kind === undefined)
      throw new SavepointError('usage', `Cannot call ${name}: it has no option "${option}"`, {
        hint: `${name !== 'open' && option in openTakes ? `open() takes ${option}, for all that follows. ` : ''}It takes: ${Object.keys(known).join(', ')}`,
      })
    if (!fits(given, kind)) throw wrong(name, option, kind)
  }
  const { keepRunning, restart } = value as Record<string, unknown>
  if (keepRunning && restart)
    throw new SavepointError('usage', `Cannot ${name}: a run cannot both go on and be started again`, {
      hint: 'Leave out one of the two, to keep it running or to restart it',
    })
}

const kindWords: Record<Kind, string> = {
  text: 'a string',
  texts: 'an array of strings',
  flag: 'true or false',
  number: 'a number',
  function: 'a function',
  any: 'anything',
}

function fits(value: unknown, kind: Kind): boolean {
  if (kind === 'any') return true
  if (kind === 'texts') return Array.isArray(value) && value.every(item => typeof item === 'string')
  return typeof value === { text: 'string', flag: 'boolean', number: 'number', function: 'function' }[kind]
}

const wrong = (name: string, what: string, kind: Kind): SavepointError =>
  new SavepointError('usage', `Cannot call ${name}: ${what} must be ${kindWords[kind]}`)
