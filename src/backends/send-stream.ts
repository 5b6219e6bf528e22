/**
 * The stream of `btrfs send --no-data`, as far as it tells which paths differ between two states. It is a list of commands
 * that would make the one of the other, with paths as they are on the way: directories may have other names meanwhile.
 */
import { joinRaw, parentOf, type Raw } from '../model/raw-path.ts'
import type { Differing } from './native-backend.ts'

const MAGIC = Buffer.from('btrfs-stream\0')
const HEADER_BYTES = MAGIC.length + 4
const COMMAND_BYTES = 10
const ATTRIBUTE_BYTES = 4
const COMMAND = { subvol: 1, snapshot: 2, rename: 9, unlink: 11, rmdir: 12, end: 21 }
const ATTRIBUTE = { path: 15, pathTo: 16, pathLink: 17 }
/** What is about to get its name, or has lost it, lies in the root and is called so. */
const NAMELESS = /^o\d+-\d+-\d+$/

/** undefined when the stream is not understood, or cut off: anything may differ. */
export function differingIn(stream: Buffer): Differing | undefined {
  if (!stream.subarray(0, MAGIC.length).equals(MAGIC)) return undefined
  const paths = new ToldPaths()
  for (let at = HEADER_BYTES; at + COMMAND_BYTES <= stream.length; ) {
    const length = stream.readUInt32LE(at)
    const command = stream.readUInt16LE(at + 4)
    const body = stream.subarray(at + COMMAND_BYTES, at + COMMAND_BYTES + length)
    if (body.length < length) return undefined
    if (command === COMMAND.end) return paths.finish()
    at += COMMAND_BYTES + length
    if (command !== COMMAND.subvol && command !== COMMAND.snapshot) paths.note(command, pathsOf(body))
  }
  return undefined
}

function pathsOf(body: Buffer): Raw[] {
  const paths: Raw[] = []
  for (let at = 0; at + ATTRIBUTE_BYTES <= body.length; ) {
    const kind = body.readUInt16LE(at)
    const value = at + ATTRIBUTE_BYTES
    at = value + body.readUInt16LE(at + 2)
    if (kind === ATTRIBUTE.path || kind === ATTRIBUTE.pathTo || kind === ATTRIBUTE.pathLink)
      paths.push(body.toString('latin1', value, at))
  }
  return paths
}

const nothing = (): Differing => ({ dirs: new Set(), moved: new Set() })

class ToldPaths {
  private readonly found = nothing()
  /** What was told of paths below something that has no name yet, relative to that. */
  private readonly below = new Map<Raw, Differing>()

  note(command: number, paths: readonly Raw[]): void {
    for (const path of paths) this.add(path, command === COMMAND.rename)
    const [from, to] = paths as [Raw, Raw?]
    if (command === COMMAND.rename && to !== undefined) this.giveName(from, to)
    // With it goes what was told of it.
    if (command === COMMAND.unlink || command === COMMAND.rmdir) this.below.delete(from)
  }

  /** What is left of something without a name may be somebody's own file of such a name. */
  finish(): Differing | undefined {
    return this.below.size === 0 ? this.found : undefined
  }

  private add(path: Raw, isMoved: boolean): void {
    const [first, ...rest] = path.split('/')
    if (NAMELESS.test(first!)) {
      this.found.dirs.add('')
      if (rest.length === 0) return
      const below = this.below.get(first!) ?? nothing()
      this.below.set(first!, below)
      addTo(below, rest.join('/'), isMoved)
    } else addTo(this.found, path, isMoved)
  }

  private giveName(from: Raw, to: Raw): void {
    const below = this.below.get(from)
    if (!below) return
    this.below.delete(from)
    for (const path of below.dirs) this.add(path === '' ? to : joinRaw(to, path), below.moved.has(path))
  }
}

function addTo({ dirs, moved }: Differing, path: Raw, isMoved: boolean): void {
  dirs.add(path)
  if (path === '') return
  dirs.add(parentOf(path))
  if (isMoved) moved.add(path)
}
