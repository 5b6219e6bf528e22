/** What goes back under a run that is only watched is no work of the run, although whoever watches is told of it. */
import { beforeEach, describe, expect } from 'vitest'
import { startRun, useRuns } from './support/background-run.ts'
import { asOrdinaryUser, giveToUser, savepoint, savepointAsUser, savepointInShell } from './support/built-cli.ts'
import { gated, isRoot } from './support/machine.ts'
import type { Workspace } from './support/workspace.ts'

let space: Workspace
useRuns(made => {
  space = made
})
beforeEach(() => {
  space.sh('mkdir -p d/empty; echo x > d/x')
})

const ways = [
  ['fanotify', isRoot, savepoint, { spawn: {}, before: [] }],
  ['inotify', true, savepointAsUser, asOrdinaryUser],
] as const
const destroy = 'echo bad > a; rm d/x; rmdir d/empty; mkdir new; echo n > new/y; chmod 700 d'

describe.each(ways)('%s', (_, works, cli, how) => {
  const json = (...args: string[]) => JSON.parse(cli(space, [...args, '--json']).stdout)
  const fileEvents = (...args: string[]) =>
    json('events', '--kind', 'file', ...args).events.map(
      ({ action: what, path, to, run }: Record<string, string | null>) =>
        `${run === null ? 'ours: ' : ''}${what} ${path} ${to}`,
    ) as string[]
  const begin = async (tracer: string, script: string) => {
    if (cli === savepointAsUser) giveToUser(space)
    cli(space, ['snapshot', '-m', 'good'])
    return startRun(space, script, { args: ['--tracer', tracer], spawn: how.spawn, before: [...how.before] })
  }

  for (const tracer of ['ptrace', 'none']) {
    gated(works, 'root', `${tracer}: a rollback while it is held still`, async () => {
      const run = await begin(tracer, `${destroy}; READY; read x; echo later > later; rm later`)
      const before = fileEvents('--run', run.id)
      expect(before.join()).toMatch(/modified a.*|deleted d\/x/)
      expect(cli(space, ['rollback', 'good', '--keep-running'])).toMatchObject({ status: 0 })
      expect([space.read('a'), space.sh('ls -A d')]).toEqual(['a1', 'empty\nx\n'])
      expect(fileEvents('--run', run.id)).toEqual(before)
      run.say('go on')
      await run.ended
      // And what it does afterwards is its own again.
      const after = fileEvents('--run', run.id)
      expect(after.slice(-before.length)).toEqual(before)
      expect(after.join()).toMatch(/deleted later/)
      expect(fileEvents().filter(each => each.startsWith('ours: restored'))).toContain('ours: restored a null')
      expect(fileEvents().join()).not.toContain('.savepoint-stage-')
    })

    gated(works, 'root', `${tracer}: what it asked for itself`, async () => {
      const run = await begin(tracer, `${destroy}; ${savepointInShell} rollback good 2>&1; READY; read x`)
      expect([space.read('a'), space.sh('ls -A d')]).toEqual(['a1', 'empty\nx\n'])
      run.say('go on')
      await run.ended
      expect(fileEvents().join()).not.toContain('.savepoint-stage-')
      expect(fileEvents('--run', run.id)).toContain('restored a null')
    })
  }
})
