/**
 * Writes a bundle: in a directory beside the place where it is to be, which takes that place when all is there. Identical contents
 * are stored once, under the key that came first.
 */
import { createHash } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fsyncSync,
  ftruncateSync,
  mkdtempSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { isNoRoom } from '../errors/errors.ts'
import { addon } from '../native/addon.ts'
import { syncDirectory } from '../store/durable.ts'
import { isAbandoned, PROCESS_MARK, processMark } from '../store/process-mark.ts'
import { BLOBS_NAME, FORMAT_VERSION, MANIFEST_NAME } from './bundle-format.ts'
import type { Content } from './content.ts'
import { Unstable } from './content.ts'
import type { FileRecord, ManifestHead, ManifestTail, State } from './manifest.ts'
import { GROUP_BYTES, MAX_VALUE_BYTES, partKey } from './parquet.ts'
import { ParquetWriter } from './parquet-writer.ts'

const MARK = new RegExp(`^${PROCESS_MARK}-\\w+$`)
const TEXT_BYTES = 256 * 1024
/** Shorter ones are not worth a write of their own. */
const SHORT_BYTES = 32 * 1024
/** Kept free for the manifest and the last blobs, should the disk become full: for each file, and besides. */
const RESERVE_FILE_BYTES = 1024
const RESERVE_BYTES = 2 * GROUP_BYTES + 1024 * 1024
const PLENTY_BYTES = 2 * 1024 ** 3

type BlobFields = Pick<State, 'blob' | 'blob_parts' | 'sha256'>

export class BundleWriter {
  private readonly output: string
  private readonly staging: string
  private readonly manifest: number
  private blobs: { fd: number; parquet: ParquetWriter } | undefined
  private readonly stored = new Map<string, BlobFields>()
  private readonly keys = new Set<string>()
  private text = ''
  private position = 0
  private files = 0
  private hasReserve = false
  isFull = false

  constructor(output: string, expectedFiles: number) {
    this.output = output
    const prefix = `.${basename(output)}.savepoint-`
    removeAbandoned(dirname(output), prefix)
    this.staging = mkdtempSync(join(dirname(output), `${prefix}${processMark()}-`))
    this.manifest = openSync(join(this.staging, MANIFEST_NAME), 'w', 0o600)
    this.makeReserve(RESERVE_BYTES + expectedFiles * RESERVE_FILE_BYTES)
  }

  get blobCount(): number {
    return this.keys.size
  }

  begin(head: ManifestHead): void {
    const fields = JSON.stringify({ format_version: FORMAT_VERSION, created_by: 'savepoint', ...head }, null, 2)
    this.write(`${fields.slice(0, -2)},\n  "files": [`)
  }

  file(record: FileRecord): void {
    this.write(`${this.files++ === 0 ? '' : ','}\n    ${fileText(record)}`)
  }

  /** The text of several of them, each behind a comma. */
  filesText(text: Buffer, count: number): void {
    const bytes = this.files === 0 ? text.subarray(1) : text
    this.files += count
    if (bytes.length < SHORT_BYTES) {
      this.write(bytes.toString())
      return
    }
    this.flushText()
    this.writeBytes(bytes)
  }

  /** Throws when the disk is full, and stores nothing more then; or `Unstable`. */
  put(wantedKey: string, content: Content): BlobFields {
    const same = this.stored.get(content.sha256)
    if (same) return same
    const key = this.unique(wantedKey)
    const fields: BlobFields = { sha256: content.sha256, blob: key }
    try {
      if (content.bytes) this.parquet().add(key, content.bytes)
      else {
        const parts = this.putParts(key, content)
        if (parts > 1) fields.blob_parts = parts
      }
    } catch (error) {
      if (isNoRoom(error)) this.isFull = true
      throw error
    }
    this.keys.add(key)
    this.stored.set(content.sha256, fields)
    return fields
  }

  /** The bundle is in its place afterwards; what was there is gone only then. */
  commit(tail: () => ManifestTail): void {
    if (this.blobs) this.finishBlobs(this.blobs)
    this.freeReserve()
    const fields = JSON.stringify(tail(), null, 2)
    this.write(`${this.files === 0 ? '' : '\n  '}],\n${fields.slice(2)}\n`)
    this.flushText()
    fsyncSync(this.manifest)
    closeSync(this.manifest)
    const old = existsSync(this.output) ? `${this.staging}.old` : undefined
    if (old) renameSync(this.output, old)
    renameSync(this.staging, this.output)
    syncDirectory(dirname(this.output))
    if (old) rmSync(old, { recursive: true })
  }

  /** Leaves nothing behind. */
  abandon(): void {
    rmSync(this.staging, { recursive: true, force: true })
  }

  private putParts(key: string, content: Content): number {
    const parts = Math.ceil(content.size / MAX_VALUE_BYTES)
    const hash = createHash('sha256')
    for (let part = 0; part < parts; part++) {
      const offset = part * MAX_VALUE_BYTES
      const length = Math.min(MAX_VALUE_BYTES, content.size - offset)
      this.parquet().addLarge(partKey(key, part), length, content.pieces(offset, length, hash))
    }
    if (hash.digest('hex') !== content.sha256) throw new Unstable('it changes while it is read')
    return parts
  }

  private parquet(): ParquetWriter {
    if (!this.blobs) {
      const fd = openSync(join(this.staging, BLOBS_NAME), 'w', 0o600)
      this.blobs = { fd, parquet: new ParquetWriter(fd) }
    }
    return this.blobs.parquet
  }

  private finishBlobs({ fd, parquet }: { fd: number; parquet: ParquetWriter }): void {
    this.freeReserve()
    parquet.finish()
    fsyncSync(fd)
    closeSync(fd)
  }

  /** Two names that are not UTF-8 may look the same. */
  private unique(key: string): string {
    let name = key
    for (let i = 2; this.keys.has(name); i++) name = `${key}#${i}`
    return name
  }

  private makeReserve(bytes: number): void {
    // Where there is plenty, it would only take time.
    if (addon.statfs(this.manifest).free > bytes + PLENTY_BYTES) return
    const fd = openSync(join(this.staging, 'reserve'), 'w', 0o600)
    const zeros = Buffer.alloc(TEXT_BYTES)
    this.hasReserve = true
    try {
      for (let done = 0; done < bytes; done += zeros.length) writeSync(fd, zeros)
    } catch (error) {
      if (!isNoRoom(error)) throw error
      ftruncateSync(fd, 0)
      this.isFull = true
    } finally {
      closeSync(fd)
    }
  }

  private freeReserve(): void {
    if (this.hasReserve) unlinkSync(join(this.staging, 'reserve'))
    this.hasReserve = false
  }

  private write(text: string): void {
    this.text += text
    if (this.text.length >= TEXT_BYTES) this.flushText()
  }

  private flushText(): void {
    this.writeBytes(Buffer.from(this.text))
    this.text = ''
  }

  private writeBytes(bytes: Buffer): void {
    try {
      this.writeWhole(bytes)
    } catch (error) {
      if (!isNoRoom(error) || !this.hasReserve) throw error
      this.isFull = true
      this.freeReserve()
      this.writeWhole(bytes)
    }
    this.position += bytes.length
  }

  private writeWhole(bytes: Buffer): void {
    for (let done = 0; done < bytes.length; )
      done += writeSync(this.manifest, bytes, done, bytes.length - done, this.position + done)
  }
}

/** As JSON.stringify, which would do a state twice that is the same before and after. */
function fileText({ before, after, git, ...rest }: FileRecord): string {
  const text = JSON.stringify(before)
  const other = after === before ? text : JSON.stringify(after)
  const where = git.in_repo ? JSON.stringify(git) : '{"in_repo":false}'
  return `${JSON.stringify(rest).slice(0, -1)},"before":${text},"after":${other},"git":${where}}`
}

/** What others left who were killed before their bundle was whole: nobody knows of it, and all that is in it is elsewhere. */
function removeAbandoned(directory: string, prefix: string): void {
  for (const name of readdirSync(directory)) {
    const mark = name.startsWith(prefix) && MARK.exec(name.slice(prefix.length))
    const path = join(directory, name)
    if (mark && isAbandoned(path, mark)) rmSync(path, { recursive: true, force: true })
  }
}
