/** A pipe for what a process writes: a real one, because a program cannot open the sockets that Node uses as /dev/stdout. */
import { closeSync } from 'node:fs'
import { Socket } from 'node:net'
import { addon } from '../native/addon.ts'

export interface OutputPipe {
  /** What was written. */
  stream: Socket
  /** For `stdio` of the process. */
  fd: number
  /** The process has its own: without this the stream would never end. */
  started(): void
}

export function outputPipe(): OutputPipe {
  const { read, write } = addon.pipe()
  return {
    stream: new Socket({ fd: read, readable: true, writable: false }),
    fd: write,
    started: () => closeSync(write),
  }
}
