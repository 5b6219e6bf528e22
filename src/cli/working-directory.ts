/** The directory a command is called in, also when an agent has deleted it under the shell's feet. */
import { existsSync, readlinkSync } from 'node:fs'

export interface WorkingDirectory {
  path: string
  /** The shell stands in a directory that does not exist any more; `path` is where it was. */
  gone: boolean
}

export function workingDirectory(): WorkingDirectory {
  try {
    return { path: process.cwd(), gone: false }
  } catch (error) {
    const path = lastKnown()
    if (path !== undefined) return { path, gone: true }
    throw error
  }
}

/** Linux remembers the name of a deleted directory; $PWD is what the shell remembers, unless another shell lost it. */
function lastKnown(): string | undefined {
  try {
    return readlinkSync('/proc/self/cwd').replace(/ \(deleted\)$/, '')
  } catch {
    return process.env.PWD
  }
}

/** Whether another directory stands where the shell's was: the shell has to enter that one. */
export const hasComeBack = ({ path, gone }: WorkingDirectory): boolean => gone && existsSync(path)
