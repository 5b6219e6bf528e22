/** Small C programs for what no shell does: threads that execute, vfork, system calls by number. */
import { execFileSync } from 'node:child_process'

/** Compiles `source` to `file`. */
export function compileC(file: string, source: string, ...flags: string[]): void {
  execFileSync('cc', ['-O1', '-pthread', ...flags, '-x', 'c', '-', '-o', file], { input: source })
}
