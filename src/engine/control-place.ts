/**
 * Where the control socket of a run lies, and how others find it: `runs/<run>/control.json` of the timeline names it. The
 * socket itself is in $XDG_RUNTIME_DIR, else in the home, each in a directory that only its owner can enter.
 */
import { closeSync, lstatSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, isAbsolute, join } from 'node:path'
import { errnoOf } from '../errors/errors.ts'
import type { Context } from './context.ts'

/** Of sockaddr_un, with the zero at its end. */
const MAX_SOCKET_PATH = 107
const OTHERS = 0o077

type Place = Pick<Context, 'home' | 'timelineDir' | 'env'>

const fileOf = ({ timelineDir }: Pick<Place, 'timelineDir'>, run: string): string =>
  join(timelineDir, 'runs', run, 'control.json')

/** Which socket a run that begins is to have. Makes its directory. */
export function newSocketPath({ home, env }: Place, run: string): string {
  const runtime = env.XDG_RUNTIME_DIR
  const directory =
    runtime && isAbsolute(runtime) && isPrivate(runtime) ? join(runtime, 'savepoint') : join(home, 'sockets')
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  if (isPrivate(directory)) return join(directory, `${run}.sock`)
  throw new Error(`${directory} can be entered by others`)
}

function isPrivate(directory: string): boolean {
  const stat = lstatSync(directory, { throwIfNoEntry: false })
  return stat?.isDirectory() === true && stat.uid === process.getuid!() && (stat.mode & OTHERS) === 0
}

/** Tells others where it is. The socket answers already. */
export function announceSocket(place: Place, run: string, socket: string): void {
  mkdirSync(dirname(fileOf(place, run)), { recursive: true, mode: 0o700 })
  writeFileSync(fileOf(place, run), `${JSON.stringify({ socket })}\n`, { mode: 0o600 })
}

/** Undefined when the run has none, or what is there cannot be read. */
export function announcedSocket(place: Pick<Place, 'timelineDir'>, run: string): string | undefined {
  try {
    const { socket } = JSON.parse(readFileSync(fileOf(place, run), 'utf8')) as { socket?: unknown }
    return typeof socket === 'string' ? socket : undefined
  } catch {
    return undefined
  }
}

/** Of a run that has ended, or was killed: nobody answers there any more. */
export function removeSocket(place: Pick<Place, 'timelineDir'>, run: string): void {
  const socket = announcedSocket(place, run)
  for (const file of [...(socket === undefined ? [] : [socket]), fileOf(place, run)]) {
    try {
      rmSync(file, { force: true })
    } catch (error) {
      // It stays, and is recognised by the run's row.
      if (!errnoOf(error)) throw error
    }
  }
}

/** A path longer than an address can be is reached through a descriptor of its directory. */
export function withSocketPath<T>(socket: string, work: (address: string) => T): T {
  if (Buffer.byteLength(socket) <= MAX_SOCKET_PATH) return work(socket)
  const directory = openSync(dirname(socket), 'r')
  try {
    return work(`/proc/self/fd/${directory}/${basename(socket)}`)
  } finally {
    closeSync(directory)
  }
}
