/** Runs of shell scripts in a workspace, and what was traced of them. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach } from 'vitest'
import type { Execution, RunResult, Savepoint } from '../../src/index.ts'
import { Workspace } from './workspace.ts'

export interface TracedRuns {
  run(script: string): Promise<RunResult>
  /** Of the newest run. */
  traced(): Execution[]
  /** The first whose command line begins so. */
  find(start: string): Execution
  /** The text of exec.jsonl of the newest run. */
  jsonl(): string
}

export const line = ({ argv }: Execution): string => argv.join(' ')

/** For the tests of a file, or of a part of it: each has a workspace with the file `a`, where `settings` are in effect. */
export function useTracedRuns(
  take: (space: Workspace, savepoint: Savepoint) => void,
  settings: NodeJS.ProcessEnv = {},
): TracedRuns {
  let space: Workspace
  let savepoint: Savepoint
  beforeEach(async () => {
    space = new Workspace('work', settings)
    space.write('a', 'a1\n')
    savepoint = await space.open()
    take(space, savepoint)
  })
  afterEach(() => space.remove())

  const traced = () => savepoint.trace().executions
  return {
    run: script => savepoint.run({ command: ['sh', '-c', script] }),
    traced,
    find: start => traced().find(execution => line(execution).startsWith(start))!,
    jsonl() {
      const { id } = savepoint.runs().at(-1)!
      return readFileSync(join(space.home, 'timelines', savepoint.timeline, 'runs', id, 'exec.jsonl'), 'utf8')
    },
  }
}
