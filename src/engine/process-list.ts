/** The processes of a timeline's runs, and signals for them: nobody else's can be seen or ended this way. */
import { closeSync } from 'node:fs'
import { constants } from 'node:os'
import { errnoOf, SavepointError } from '../errors/errors.ts'
import { rawFromBytes, rawFromText, rawToText } from '../model/raw-path.ts'
import { redactCommands } from '../model/redact.ts'
import { nearest } from '../model/suggest.ts'
import { addon } from '../native/addon.ts'
import { bootTime } from './boot-time.ts'
import type { Context } from './context.ts'
import { newOperation } from './new-operation.ts'
import { commandLineOf, everyProcess, isOurHelper, type SeenProcess, startedIn } from './process-tree.ts'
import { redactPatterns } from './redact-patterns.ts'
import type { RunProcess } from './results.ts'

/** USER_HZ, which Linux shows to programs on every machine. */
const TICKS_PER_SECOND = 100

export function processesOfRuns(ctx: Context): RunProcess[] {
  const bootedAt = bootTime()
  const seen = seenOfRuns(ctx)
  const commands = redactCommands(
    seen.map(each => argvOf(each.process.pid)),
    redactPatterns(ctx),
    () => {},
  )
  return seen.map(({ run, process: { pid, start, parent, state } }, i) => ({
    pid,
    start,
    startedAt: bootedAt + (start * 1000) / TICKS_PER_SECOND,
    parent,
    run,
    state,
    argv: commands[i]!.map(rawFromText),
  }))
}

/** The signal goes to the process that was looked at, also when its number is another's by then. */
export function signalProcess(
  ctx: Context,
  pid: number,
  { start, signal = 'SIGTERM' }: { start?: number; signal?: string } = {},
): RunProcess {
  const number = numberOf(signal)
  const unknown = () =>
    new SavepointError('process.unknown', `Cannot send ${signal} to ${pid}: it is no process of a run of this target`, {
      hint: '`savepoint ctl ps` lists those that are',
    })
  const found = processesOfRuns(ctx).find(each => each.pid === pid)
  if (!found || (start !== undefined && found.start !== start)) throw unknown()
  try {
    const fd = addon.pidfdOpen(pid)
    try {
      if (everyProcess().find(each => each.pid === pid)?.start !== found.start) throw unknown()
      addon.pidfdSignal(fd, number)
    } finally {
      closeSync(fd)
    }
  } catch (error) {
    if (errnoOf(error) === 'ESRCH') throw unknown()
    throw error
  }
  if (!ctx.unwritable)
    ctx.db.addOperation({
      ...newOperation(ctx, 'kill', `${nameOf(number)} to process ${pid} of ${found.run}`, {
        pid,
        start: found.start,
        signal: nameOf(number),
        run: found.run,
      }),
      state: 'fixed',
    })
  return found
}

const nameOf = (number: number): string =>
  Object.entries(constants.signals).find(([, each]) => each === number)?.[0] ?? String(number)

/** SIGTERM, TERM, term or 15. */
function numberOf(signal: string): number {
  const numbers = new Map(Object.entries(constants.signals).map(([name, number]) => [name.slice('SIG'.length), number]))
  const name = signal.toUpperCase().replace(/^SIG/, '')
  const number = numbers.get(name) ?? [...numbers.values()].find(each => String(each) === signal)
  if (number !== undefined) return number
  const meant = nearest(name, numbers.keys())
  throw new SavepointError('usage', `There is no signal ${signal}`, {
    hint: meant ? `Did you mean SIG${meant}?` : 'For example SIGTERM, SIGKILL or SIGSTOP',
  })
}

/** By the mark that a run gives to its commands, by the helper above them, and by descent from either. */
export function seenOfRuns(ctx: Context): { process: SeenProcess; run: string }[] {
  const runs = ctx.db.runs()
  const known = new Set(runs.map(({ id }) => id))
  const supervisors = new Map(runs.flatMap(({ id, pid, endedAt }) => (pid && endedAt === undefined ? [[pid, id]] : [])))
  const all = everyProcess()
  const byPid = new Map(all.map(each => [each.pid, each]))
  const runOf = new Map<number, string | undefined>()
  const look = (pid: number): string | undefined => {
    const seen = byPid.get(pid)
    if (!seen) return undefined
    if (runOf.has(pid)) return runOf.get(pid)
    // Against a circle, which a number that was given away meanwhile could make.
    runOf.set(pid, undefined)
    const mark = startedIn(pid)
    const run =
      mark !== undefined && known.has(mark)
        ? mark
        : isOurHelper(pid) && supervisors.has(seen.parent)
          ? supervisors.get(seen.parent)
          : look(seen.parent)
    runOf.set(pid, run)
    return run
  }
  return all.flatMap(seen => {
    const run =
      /[ZX]/.test(seen.state) || seen.pid === process.pid || isOurHelper(seen.pid) ? undefined : look(seen.pid)
    return run === undefined ? [] : [{ process: seen, run }]
  })
}

const argvOf = (pid: number): string[] => commandLineOf(pid).map(word => rawToText(rawFromBytes(word)))
