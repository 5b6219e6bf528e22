/**
 * A bundle, opened. It is not trusted: its manifest is checked against the schema, its paths must be what they seem, and each content
 * is compared with its hash when it is read. Close it.
 */
import { createHash } from 'node:crypto'
import { closeSync, existsSync, openSync, readFileSync, readSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { quote } from '../config/problem.ts'
import { errnoOf, errnoWords, SavepointError } from '../errors/errors.ts'
import { randomHex } from '../model/id.ts'
import type { Raw } from '../model/raw-path.ts'
import { BadBundle } from './bad-bundle.ts'
import { BLOBS_NAME, MANIFEST_NAME } from './bundle-format.ts'
import { isInGit, pathText, rawOf } from './bundle-paths.ts'
import { type FileRecord, type Manifest, manifestSchema, type State } from './manifest.ts'
import { partKey } from './parquet.ts'
import { type BlobPlace, ParquetReader } from './parquet-reader.ts'

/** What JSON.parse can be given. */
const MAX_MANIFEST_BYTES = 512 * 1024 * 1024
const PIECE_BYTES = 1024 * 1024
const LENGTH_BYTES = 4
/** What a recording can have (PATH_ROOM in native/helper/tracee.h), and a filesystem. */
const MAX_PATH_BYTES = 8192
const MAX_NAME_BYTES = 255

export interface BundleFile extends FileRecord {
  raw: Raw
}

export class Bundle {
  readonly directory: string
  readonly manifest: Omit<Manifest, 'files'>
  /** In the order of the manifest. */
  readonly files: BundleFile[]
  readonly startCwd: Raw
  private opened: ParquetReader | undefined

  constructor(directory: string) {
    this.directory = directory
    const { files, ...manifest } = readManifest(join(directory, MANIFEST_NAME))
    this.manifest = manifest
    this.startCwd = checkedPath(manifest.start_cwd, manifest.start_cwd_bytes)
    const seen = new Set<Raw>()
    this.files = files.map(file => {
      const raw = checkedPath(file.path, file.path_bytes)
      // No recording has any: what writes there decides what git will execute.
      if (isInGit(raw)) throw new BadBundle(`${MANIFEST_NAME} has ${quote(file.path)}, which lies in .git`)
      if (seen.has(raw)) throw new BadBundle(`${MANIFEST_NAME} has ${quote(file.path)} twice`)
      seen.add(raw)
      return { ...file, raw }
    })
  }

  close(): void {
    this.opened?.close()
    this.opened = undefined
  }

  get hasBlobs(): boolean {
    return existsSync(join(this.directory, BLOBS_NAME))
  }

  get blobs(): ParquetReader {
    this.opened ??= this.openBlobs()
    return this.opened
  }

  /** The keys that a state's content lies under. One after the other: how many a manifest says there are is not trusted. */
  *keysOf({ blob, blob_parts }: State): Generator<string> {
    if (blob === undefined) return
    for (let part = 0; part < (blob_parts ?? 1); part++) yield partKey(blob, part)
  }

  /** The content of a state, in pieces that are valid until the next one; at the end it is compared with its hash. */
  *pieces(state: State): Generator<Buffer> {
    const hash = createHash('sha256')
    let size = 0
    for (const key of this.keysOf(state)) {
      const place = this.blobs.keys.get(key)
      if (!place) throw new BadBundle(`${BLOBS_NAME} has no ${key}`)
      for (const piece of this.partPieces(place, (state.size ?? 0) - size)) {
        hash.update(piece)
        size += piece.length
        yield piece
      }
    }
    if (size !== state.size) throw new BadBundle(`${state.blob} has ${size} bytes, and the manifest says ${state.size}`)
    if (hash.digest('hex') !== state.sha256) throw new BadBundle(`${state.blob} is not what its hash says`)
  }

  /** The whole of it; undefined when there is none, or it has more than `maxBytes`. */
  content(state: State, maxBytes: number): Buffer | undefined {
    if (state.blob === undefined || (state.size ?? 0) > maxBytes) return undefined
    return Buffer.concat([...this.pieces(state)].map(piece => Buffer.from(piece)))
  }

  private *partPieces(place: BlobPlace, most: number): Generator<Buffer> {
    if (!this.blobs.isLarge(place)) {
      yield this.blobs.read(place)
      return
    }
    if (this.blobs.sizeOfLarge(place) > most) throw new BadBundle('a content is larger than the manifest says')
    // Beside nothing of the user's: the bundle may lie where nobody may write.
    const file = join(tmpdir(), `savepoint-blob-${randomHex(8)}`)
    const fd = openSync(file, 'wx+', 0o600)
    try {
      rmSync(file)
      this.blobs.expand(place, fd)
      const buffer = Buffer.allocUnsafe(PIECE_BYTES)
      for (let at = LENGTH_BYTES; ; ) {
        const got = readSync(fd, buffer, 0, buffer.length, at)
        if (got === 0) return
        yield buffer.subarray(0, got)
        at += got
      }
    } finally {
      closeSync(fd)
    }
  }

  private openBlobs(): ParquetReader {
    try {
      return new ParquetReader(join(this.directory, BLOBS_NAME))
    } catch (error) {
      if (error instanceof SavepointError || errnoOf(error) === undefined) throw error
      throw new BadBundle(`${BLOBS_NAME} cannot be read: ${errnoWords(error)}`, error)
    }
  }
}

function readManifest(file: string): Manifest {
  let text: string
  try {
    const stat = statSync(file)
    if (!stat.isFile()) throw new BadBundle(`${file} is no file`)
    if (stat.size > MAX_MANIFEST_BYTES) throw new BadBundle(`${MANIFEST_NAME} is too large`)
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if (error instanceof SavepointError || errnoOf(error) === undefined) throw error
    throw new SavepointError('bundle.damaged', `Cannot read the bundle: ${file}: ${errnoWords(error)}`, {
      hint: 'Name the directory that `savepoint record -o` wrote',
      cause: error,
    })
  }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new BadBundle(`${MANIFEST_NAME} is no JSON: ${(error as Error).message}`, error)
  }
  const version = (value as { format_version?: unknown } | null)?.format_version
  if (typeof version === 'number' && version !== 1)
    throw new BadBundle(`${MANIFEST_NAME} has format version ${version}, which this version of Savepoint does not know`)
  const result = manifestSchema.safeParse(value)
  if (result.success) return result.data
  const issue = result.error.issues[0]!
  throw new BadBundle(`${MANIFEST_NAME} is wrong at ${issue.path.join('.')}: ${issue.message}`)
}

const isName = (name: Raw): boolean =>
  name !== '' && name !== '.' && name !== '..' && name.length <= MAX_NAME_BYTES && !name.includes('\0')

/** A path that goes nowhere else than it says, and whose bytes are what its text shows. */
function checkedPath(text: string, bytes: string | undefined): Raw {
  const raw = rawOf(text, bytes)
  const isPlain =
    raw === '/' || (raw.length <= MAX_PATH_BYTES && raw[0] === '/' && raw.slice(1).split('/').every(isName))
  if (!isPlain) throw new BadBundle(`${MANIFEST_NAME} has the path ${quote(text)}, which is none`)
  if (bytes !== undefined && pathText(raw).text !== text)
    throw new BadBundle(`${MANIFEST_NAME} has the path ${quote(text)}, but its bytes are of another one`)
  return raw
}
