/**
 * A snapshot as the bytes of a PAX archive: parents before children, names sorted, "./" first. Files, directories,
 * symlinks, FIFOs, devices, hard links, holes, set-id bits, owners, nanoseconds, xattrs and raw names all survive.
 * Directories carry no time, because snapshots do not know one.
 */
import type { Entry } from '../model/entry.ts'
import { joinRaw, type Raw } from '../model/raw-path.ts'
import type { Store } from '../store/store.ts'
import { sameEntry } from '../store/tree-diff.ts'
import { type Content, openContent } from './archive-content.ts'
import { encodePax, encodePaxTime, type PaxRecord, xattrRecords } from './archive-pax.ts'
import { dataBytes, encodeSparseMap, sparseRecords } from './archive-sparse.ts'
import { encodeTarHeader, fitsOctal, NAME_BYTES, TAR_BLOCK_BYTES } from './archive-tar-header.ts'
import { type UnknownName, unknownRecord } from './archive-unknown.ts'

/** Small pieces are gathered up to this size, so that the compressor gets few and large ones. */
const PIECE_BYTES = 256 * 1024
const ZEROS = Buffer.alloc(1024 * 1024)
const NS = 1_000_000_000n

const typeFlags = { file: '0', link: '2', char: '3', block: '4', dir: '5', fifo: '6' } as const
const HARD_LINK = '1'

export interface TarWriteOptions {
  store: Store
  /** The entry of the target directory itself. */
  root: Entry
  /** Times of directories are not part of a state: they get this one. */
  dirTimeMs: number
  /** Files that do not go into the archive; it notes their names. */
  leaveOut(path: Raw, entry: Entry): boolean
  onLeftOut(path: Raw): void
  /** Called once for each entry that is in the archive, before its content. */
  onEntry(path: Raw, entry: Entry): void
}

export function* tarBytes(options: TarWriteOptions): Generator<Buffer> {
  let gathered: Buffer[] = []
  let bytes = 0
  for (const piece of pieces(options)) {
    gathered.push(piece)
    bytes += piece.length
    if (bytes < PIECE_BYTES) continue
    yield Buffer.concat(gathered)
    gathered = []
    bytes = 0
  }
  yield Buffer.concat([...gathered, Buffer.alloc(2 * TAR_BLOCK_BYTES)])
}

function* pieces({ store, root, dirTimeMs, leaveOut, onLeftOut, onEntry }: TarWriteOptions): Generator<Buffer> {
  const linked = new Map<bigint, { path: Raw; entry: Entry }>()
  const isOut = (path: Raw, entry: Entry) =>
    entry.kind === 'unknown' || (entry.kind === 'file' && leaveOut(path, entry))
  const unknownIn = (path: Raw, dir: Entry): UnknownName[] =>
    store
      .tree(dir.content)
      .filter(entry => isOut(joinRaw(path, entry.name), entry))
      .map(({ name, kind, reason = 'excluded', found, limit }) => ({
        name,
        reason,
        found: kind === 'unknown' ? found : kind,
        limit,
      }))

  const dated = (dir: Entry): Entry => ({ ...dir, mtimeNs: BigInt(Math.floor(dirTimeMs / 1000)) * NS })
  yield* headerOf('./', dated(root), { records: unknownIn('', root).map(unknownRecord) })
  // Not recursive: paths may be thousands of directories deep.
  const open = [{ path: '', entries: store.tree(root.content), at: 0 }]
  for (let dir = open.at(-1); dir; dir = open.at(-1)) {
    const entry = dir.entries[dir.at++]
    if (!entry) {
      open.pop()
      continue
    }
    const path = joinRaw(dir.path, entry.name)
    if (isOut(path, entry)) {
      if (entry.kind !== 'unknown') onLeftOut(path)
      continue
    }
    onEntry(path, entry)
    if (entry.kind === 'dir') {
      yield* headerOf(`./${path}/`, dated(entry), { records: unknownIn(path, entry).map(unknownRecord) })
      open.push({ path, entries: store.tree(entry.content), at: 0 })
    } else if (entry.kind === 'file') {
      const first = entry.linkGroup === 0n ? undefined : linked.get(entry.linkGroup)
      if (first && sameEntry(first.entry, entry)) yield* headerOf(`./${path}`, entry, { hardLink: `./${first.path}` })
      else {
        if (entry.linkGroup !== 0n) linked.set(entry.linkGroup, { path, entry })
        yield* filePieces(`./${path}`, entry, openContent(store, entry))
      }
    } else yield* headerOf(`./${path}`, entry, {})
  }
}

function* filePieces(name: Raw, entry: Entry, content: Content): Generator<Buffer> {
  const { size } = entry
  if (!entry.sparse) {
    yield* headerOf(name, entry, { size })
    yield* denseData(content, size)
    yield padding(size)
    return
  }
  const map = encodeSparseMap(content.segments, size)
  const stored = map.length + dataBytes(content.segments)
  yield* headerOf(`./GNUSparseFile.0/${entry.name}`, entry, {
    size: stored,
    records: sparseRecords(name, size),
    isPlaceholder: true,
  })
  yield map
  yield* content.data()
  yield padding(stored)
}

/** The whole content, with holes as zeros: the same bytes may be stored with holes because of another file. */
function* denseData(content: Content, size: number): Generator<Buffer> {
  const data = content.data()
  let at = 0
  for (const { offset, length } of content.segments) {
    yield* zeroBytes(offset - at)
    for (let rest = length; rest > 0; ) {
      const piece = data.next().value!
      yield piece
      rest -= piece.length
    }
    at = offset + length
  }
  yield* zeroBytes(size - at)
  // Runs it to its end, where the digest is checked.
  data.next()
}

function* zeroBytes(length: number): Generator<Buffer> {
  for (let rest = length; rest > 0; rest -= ZEROS.length) yield ZEROS.subarray(0, Math.min(rest, ZEROS.length))
}

const padding = (size: number): Buffer => ZEROS.subarray(0, -size & (TAR_BLOCK_BYTES - 1))

interface HeaderOptions {
  size?: number
  records?: PaxRecord[]
  hardLink?: Raw
  /** The real name is in a record: the one in the header may be cut. */
  isPlaceholder?: boolean
}

/** The header block, after an extended one where POSIX's fields do not suffice. */
function* headerOf(name: Raw, entry: Entry, options: HeaderOptions): Generator<Buffer> {
  const { size = 0, hardLink } = options
  const linkname = hardLink ?? entry.target
  const seconds = entry.mtimeNs / NS
  const isPlainTime = entry.mtimeNs % NS === 0n && fitsOctal(Number(seconds), 11)
  const records: PaxRecord[] = []
  if (name.length > NAME_BYTES && !options.isPlaceholder) records.push(['path', name])
  if (linkname.length > NAME_BYTES) records.push(['linkpath', linkname])
  if (!fitsOctal(size, 11)) records.push(['size', String(size)])
  if (!fitsOctal(entry.uid, 7)) records.push(['uid', String(entry.uid)])
  if (!fitsOctal(entry.gid, 7)) records.push(['gid', String(entry.gid)])
  if (!isPlainTime) records.push(['mtime', encodePaxTime(entry.mtimeNs)])
  if (entry.xattrs && hardLink === undefined) records.push(...xattrRecords(entry.xattrs))
  const header = {
    name,
    mode: entry.mode,
    uid: entry.uid,
    gid: entry.gid,
    size,
    mtimeSeconds: Number(seconds),
    type: hardLink === undefined ? typeFlags[entry.kind as keyof typeof typeFlags] : HARD_LINK,
    linkname,
    devMajor: entry.rdevMajor,
    devMinor: entry.rdevMinor,
  }
  // Not pushed: a directory may have more notes than a call may have arguments.
  const all = [...records, ...(options.records ?? [])]
  if (all.length > 0) {
    const body = encodePax(all)
    const blank = { mode: 0o644, uid: 0, gid: 0, mtimeSeconds: 0, linkname: '', devMajor: 0, devMinor: 0 }
    yield encodeTarHeader({ ...blank, name: './PaxHeaders/x', size: body.length, type: 'x' })
    yield body
    yield padding(body.length)
  }
  yield encodeTarHeader(header)
}
