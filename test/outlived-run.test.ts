/** A shell that outlives the run that it was started in, as in a tmux server of an agent: what is started there is a run of its own. */
import { expect, it } from 'vitest'
import { startRun, useRuns } from './support/background-run.ts'
import { savepoint, savepointInShell, savepointJson } from './support/built-cli.ts'
import type { Workspace } from './support/workspace.ts'

let space: Workspace
useRuns(made => {
  space = made
})

/** Waits for a line in the run, and carries `script` out when that is over. */
async function afterRun(script: string, directory = space.dir): Promise<string> {
  space.sh('mkfifo ../go ../out')
  const left = `read line < ../go; (cd '${directory}'; ${script}) > ../out 2>&1`
  const run = await startRun(
    space,
    `setsid sh -c '${left.replaceAll("'", "'\\''")}' > /dev/null 2>&1 < /dev/null &\nREADY`,
  )
  await run.ended
  return space.sh('echo go > ../go; cat ../out')
}

const agent = `${savepointInShell} run -- sh -c 'echo made > made; rm -rf made'`

it('is guarded, and says that changes are only watched', async () => {
  const said = await afterRun(agent)
  expect(said).toContain('commands are traced (ptrace), but not which of them changes a file: ')
  expect(savepointJson(space, ['history', 'made']).versions).toHaveLength(2)
})

it('also in another directory', async () => {
  space.sh('mkdir ../other')
  const cwd = space.at('../other')
  expect(await afterRun(agent, cwd)).toContain('commands are traced (ptrace)')
  expect(savepointJson(space, ['runs'], { cwd })).toHaveLength(1)
})

it('may tidy up, which a process of a run that goes on may not', async () => {
  expect(await afterRun(`${savepointInShell} gc`)).not.toContain('this is a process of')
  const inside = savepoint(space, ['run', '--', 'sh', '-c', `${savepointInShell} gc`])
  expect(inside.stderr).toContain('this is a process of run_')
})

it('what a run inside of another one leaves is recorded while that one goes on', async () => {
  space.sh('mkfifo ../go')
  const inner = '(sleep 0.2; /bin/echo in-daemon) > /dev/null 2>&1 & exit 0'
  const run = await startRun(space, `${savepointInShell} run -q -- sh -c '${inner}'; READY; read line < ../go`)
  const [of] = savepointJson(space, ['runs']).filter(({ id }: { id: string }) => id !== run.id)
  const told = () => savepointJson(space, ['trace', of.id]).commands as { argv: string[]; note: string | null }[]
  const isLate = ({ argv, note }: ReturnType<typeof told>[number]) =>
    argv[1] === 'in-daemon' && note === 'after the run'
  await expect.poll(() => told().some(isLate), { timeout: 60_000 }).toBe(true)
  space.sh('echo > ../go')
  await run.ended
})
