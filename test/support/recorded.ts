/** Commands that are recorded, by the program as a user calls it, and what their bundles say. */
import type { SpawnSyncOptions } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Bundle, type BundleFile } from '../../src/record/index.ts'
import { type CliResult, savepoint } from './built-cli.ts'
import type { Workspace } from './workspace.ts'

const SHOWN_BYTES = 256 * 1024 * 1024

export class Recorded {
  readonly result: CliResult
  readonly directory: string
  private opened: Bundle | undefined

  constructor(result: CliResult, directory: string) {
    this.result = result
    this.directory = directory
  }

  get bundle(): Bundle {
    this.opened ??= new Bundle(this.directory)
    return this.opened
  }

  get manifest(): Bundle['manifest'] {
    return this.bundle.manifest
  }

  /** By its absolute path. */
  find(path: string): BundleFile | undefined {
    return this.bundle.files.find(file => file.path === path)
  }

  file(path: string): BundleFile {
    const found = this.find(path)
    if (!found) throw new Error(`${path} is not in the bundle`)
    return found
  }

  /** The content of a state, as text. */
  text(path: string, side: 'before' | 'after'): string | undefined {
    return this.bundle.content(this.file(path)[side], SHOWN_BYTES)?.toString()
  }

  get raw(): string {
    return readFileSync(join(this.directory, 'manifest.json'), 'utf8')
  }
}

export interface RecordOptions extends SpawnSyncOptions {
  args?: string[]
  name?: string
}

let last = 0

/** Beside the workspace, so that the bundle is not seen by the command. */
export function record(space: Workspace, command: string[], options: RecordOptions = {}): Recorded {
  const { args = [], name = `bundle-${++last}`, ...spawn } = options
  const directory = join(space.base, name)
  return new Recorded(savepoint(space, ['record', '-o', directory, ...args, '--', ...command], spawn), directory)
}

export const recordScript = (space: Workspace, script: string, options?: RecordOptions): Recorded =>
  record(space, ['sh', '-ec', script], options)
