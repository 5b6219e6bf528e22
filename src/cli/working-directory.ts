/** The directory a command is called in, also when an agent has deleted it under the shell's feet. */
import { existsSync } from 'node:fs'
import { isAbsolute } from 'node:path'

export interface WorkingDirectory {
  path: string
  /** The shell stands in a directory that does not exist any more; `path` is where it was. */
  gone: boolean
}

export function workingDirectory(): WorkingDirectory {
  try {
    return { path: process.cwd(), gone: false }
  } catch (error) {
    const { PWD } = process.env
    if (PWD && isAbsolute(PWD)) return { path: PWD, gone: true }
    throw error
  }
}

/** Whether another directory stands where the shell's was: the shell has to enter that one. */
export const hasComeBack = ({ path, gone }: WorkingDirectory): boolean => gone && existsSync(path)
