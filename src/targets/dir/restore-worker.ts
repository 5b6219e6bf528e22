/** A worker thread of a restore: unpacks one block at a time, checks each content against its id, and writes the files. */
import { closeSync, openSync, readSync } from 'node:fs'
import { parentPort } from 'node:worker_threads'
import { type BlockFiles, writeBlockFiles } from './restore-block.ts'

export interface WriteTask {
  task: number
  root: number
  packFile: string
  offset: number
  bytes: number
  files: BlockFiles
}
export type WriteReply =
  | { task: number; meta: Uint8Array }
  | { task: number; error: { message: string; code?: string } }

const descriptors = new Map<string, number>()

function packDescriptor(file: string): number {
  let fd = descriptors.get(file)
  if (fd === undefined) {
    for (const old of descriptors.values()) closeSync(old)
    descriptors.clear()
    fd = openSync(file, 'r')
    descriptors.set(file, fd)
  }
  return fd
}

parentPort!.on('message', (task: WriteTask) => {
  try {
    const block = Buffer.allocUnsafe(task.bytes)
    readSync(packDescriptor(task.packFile), block, 0, task.bytes, task.offset)
    const meta = writeBlockFiles(task.root, block, task.files)
    parentPort!.postMessage({ task: task.task, meta } satisfies WriteReply)
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException
    parentPort!.postMessage({ task: task.task, error: { message, code } } satisfies WriteReply)
  }
})
