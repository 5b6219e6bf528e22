/** A process that records what a run has left running, until the last of it has ended: see left-trace.ts. */
import { rmSync, statSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'
import { redactFlags } from '../config/config.ts'
import { monotonicMs } from '../model/monotonic.ts'
import { rawToBytes } from '../model/raw-path.ts'
import { freeBytes } from '../store/reserve.ts'
import { EventDecoder } from '../tracers/decode.ts'
import { encodeRequest, FrameReader, REQUEST } from '../tracers/frames.ts'
import { sayWeWrite } from './home.ts'
import { LEFT_VARIABLE, type LeftRun, markOf } from './left-trace.ts'
import { openTimeline } from './open-timeline.ts'
import { TraceRecorder } from './trace-recorder.ts'

/** Its name as others see it, of 15 bytes at most: see process-tree.ts. */
process.title = 'savepoint-left'
sayWeWrite()

/** What goes on for weeks must not fill the disk with what it executes: that is of about 90,000 commands. */
const MAX_BYTES = 64 * 1024 * 1024

const { run, home, timelineDir, targetPath, floorBytes, redact } = JSON.parse(process.env[LEFT_VARIABLE]!) as LeftRun
const patterns = (sources: string[]) => sources.map(source => new RegExp(source, redactFlags))
const db = openTimeline(timelineDir)
// Nobody is there to be told anything: whoever asks later finds that it was not brought to its end.
let isWhole = true
const fail = () => {
  isWhole = false
}
const ctx = { db, home, timelineDir, targetPath: rawToBytes(targetPath), notice: fail, warn: () => {} }
const recorder = new TraceRecorder(ctx, run, { quick: patterns(redact.quick), other: patterns(redact.other) }, () => {})
recorder.resume(db.trace.open(run))

const decoder = new EventDecoder(Date.now() - monotonicMs())
const reader = new FrameReader(frame => {
  const event = decoder.decode(frame)
  if (event) recorder.add(event)
  if (event?.type === 'exec') recorder.note(event.id, 'after the run')
})
const fileBytes = () => statSync(join(timelineDir, 'runs', run, 'exec.jsonl'), { throwIfNoEntry: false })?.size ?? 0
const bytesBefore = fileBytes()
const hasRoom = () => fileBytes() - bytesBefore < MAX_BYTES && freeBytes(home) >= floorBytes
const channel = new Socket({ fd: 3 })
channel.on('data', (chunk: Buffer) => {
  reader.push(chunk)
  recorder.settle()
  if (hasRoom()) return
  isWhole = false
  channel.destroy()
})
channel.on('error', () => {})
channel.on('close', () => {
  const { lost } = recorder.finish()
  if (lost > 0) db.log.add({ kind: 'run', what: 'lost', at: Date.now(), run, note: String(lost) })
  db.close()
  if (isWhole && lost === 0) rmSync(markOf({ timelineDir }, run), { force: true })
})
channel.write(encodeRequest(REQUEST.follow, 0))
