/** Starts one of our worker threads, from the bundle or from the sources. */
import { existsSync, realpathSync } from 'node:fs'
import type { Worker, WorkerOptions } from 'node:worker_threads'

export function startWorker(name: 'restore-worker', options: WorkerOptions = {}): Worker {
  const file = [`./${name}.js`, `./${name}.ts`]
    .map(file => new URL(file, import.meta.url))
    .find(url => existsSync(url))!
  leaveRemovedDirectory()
  // Not imported: most commands start none, and loading it takes 3 ms of each.
  const threads = process.getBuiltinModule('node:worker_threads')
  return new threads.Worker(file, { ...options, execArgv: ['--disable-warning=ExperimentalWarning'] })
}

/**
 * No thread starts in a directory that is gone, such as the workspace that a run removed and its own shell still stands in.
 * Nothing can be reached from there by a relative path any more, so nobody misses it.
 */
function leaveRemovedDirectory(): void {
  try {
    // Not process.cwd(): that remembers what it was.
    realpathSync.native('.')
  } catch {
    process.chdir('/')
  }
}
