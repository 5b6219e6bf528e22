/** A process that records what a run has left running, until the last of it has ended: see left-trace.ts. */
import { Socket } from 'node:net'
import { redactFlags } from '../config/config.ts'
import { monotonicMs } from '../model/monotonic.ts'
import { rawToBytes } from '../model/raw-path.ts'
import { EventDecoder } from '../tracers/decode.ts'
import { encodeRequest, FrameReader, REQUEST } from '../tracers/frames.ts'
import { LEFT_VARIABLE, type LeftRun } from './left-trace.ts'
import { openTimeline } from './open-timeline.ts'
import { TraceRecorder } from './trace-recorder.ts'

/** Its name as others see it, of 15 bytes at most: see process-tree.ts. */
process.title = 'savepoint-left'

const { run, home, timelineDir, targetPath, redact } = JSON.parse(process.env[LEFT_VARIABLE]!) as LeftRun
const patterns = (sources: string[]) => sources.map(source => new RegExp(source, redactFlags))
const db = openTimeline(timelineDir)
// Nobody is there to be told anything.
const ctx = { db, home, timelineDir, targetPath: rawToBytes(targetPath), notice: () => {}, warn: () => {} }
const recorder = new TraceRecorder(ctx, run, { quick: patterns(redact.quick), other: patterns(redact.other) }, () => {})
recorder.resume(db.trace.executions(run))

const decoder = new EventDecoder(Date.now() - monotonicMs())
const reader = new FrameReader(frame => {
  const event = decoder.decode(frame)
  if (event) recorder.add(event)
  if (event?.type === 'exec') recorder.note(event.id, 'after the run')
})
const channel = new Socket({ fd: 3 })
channel.on('data', (chunk: Buffer) => {
  reader.push(chunk)
  recorder.settle()
})
channel.on('error', () => {})
channel.on('close', () => {
  recorder.finish()
  db.close()
})
channel.write(encodeRequest(REQUEST.follow, 0))
