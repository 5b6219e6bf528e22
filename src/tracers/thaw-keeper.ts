/**
 * Sees to it that processes which we stop ourselves go on should we be killed meanwhile: a process of the helper that knows
 * whom (native/helper/thaw.h). Where there is no helper there is none of this.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { writeSync } from 'node:fs'
import type { Socket } from 'node:net'
import { endianness } from 'node:os'
import { errnoOf } from '../errors/errors.ts'
import { helperFile } from './probe-helper.ts'

const PID_BYTES = 4

export class ThawKeeper {
  private readonly child: ChildProcess | undefined

  constructor() {
    const file = helperFile()
    if (file === undefined) return
    this.child = spawn(file, ['--thaw'], { stdio: ['pipe', 'ignore', 'ignore'], env: {} })
    this.child.on('error', () => {})
    this.child.stdin!.on('error', () => {})
    this.child.unref()
  }

  /** This one is about to be stopped. Known to the keeper, or in its pipe, when it returns. */
  note(pid: number): void {
    const { fd } = (this.child?.stdin as (Socket & { _handle?: { fd?: number } }) | undefined)?._handle ?? {}
    if (fd === undefined || fd < 0) return
    const number = Buffer.alloc(PID_BYTES)
    if (endianness() === 'LE') number.writeInt32LE(pid)
    else number.writeInt32BE(pid)
    try {
      writeSync(fd, number)
    } catch (error) {
      // It was killed, or is far behind: there is nobody to tell.
      if (!errnoOf(error)) throw error
    }
  }

  /** They go on, or are gone. Before its pipe ends: it would take that for our death. */
  end(): void {
    this.child?.kill('SIGKILL')
  }
}
