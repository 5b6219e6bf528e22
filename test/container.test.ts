/** A run inside a container with the default profile of seccomp, and a container inside a run. */
import { spawnSync } from 'node:child_process'
import { afterEach, beforeEach, expect } from 'vitest'
import { builtCommand, savepointInShell } from './support/built-cli.ts'
import { besideContainers, containerCommand, missingForContainers } from './support/container.ts'
import { gated } from './support/machine.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
  for (const path of ['a', 'sub/b', 'gone/x']) space.write(path, '1\n')
})
afterEach(() => space.remove())

const possible = missingForContainers === undefined
const needs = missingForContainers ?? ''

function start(command: string[]): { status: number | null; stdout: string; stderr: string } {
  const [program, ...args] = besideContainers(command)
  return spawnSync(program!, args, { cwd: space.dir, env: space.env, encoding: 'utf8', timeout: 120_000 })
}

/** A script in a container. */
function inContainer(script: string, options: string[] = []) {
  const variables = ['HOME', 'PATH', 'SAVEPOINT_HOME'].flatMap(name => ['-e', `${name}=${space.env[name]}`])
  return start(containerCommand(space.base, ['sh', '-c', script], [...variables, '-w', space.dir, ...options]))
}

const own = savepointInShell
const work = `${own} doctor --json | tr -d '\\n'; echo
  ${own} run -q -- sh -c 'echo 2 > a; mkdir new; echo 3 > new/c; sh -c "exit 3"; rm -rf gone; exit 7'
  echo "exit $?, $(cat a)"; ${own} trace; ${own} why a; ${own} undo`

/** What was known of the run's work when it was about to destroy something. */
async function guardedState(): Promise<(string | boolean)[]> {
  const savepoint = await space.open()
  const guard = savepoint.snapshots().find(({ type }) => type === 'guard')!
  return [guard.runOnly, ...['a', 'new/c', 'gone/x'].map(path => savepoint.read(guard.id, path).toString())]
}
const atGuard = [true, '2\n', '3\n', '1\n']
const isBack = () =>
  expect([space.read('a'), space.read('new/c'), space.read('gone/x')]).toEqual(['1\n', undefined, '1\n'])

const kinds: [title: string, options: string[], tracer: RegExp][] = [
  ['as root, with the default rights', [], /^seccomp: works, without new privileges /],
  ['as root, without any', ['--cap-drop=all', '--security-opt=no-new-privileges'], /^seccomp: works /],
  ['as another user', ['--user=1234:1234'], /^seccomp: works, without new privileges /],
]
for (const [title, options, tracer] of kinds) {
  gated(possible, needs, `${title}: traced, guarded and undone as outside`, async () => {
    if (title === 'as another user') spawnSync('chown', ['-R', '1234:1234', space.base])
    const { status, stdout, stderr } = inContainer(work, options)
    expect({ status, stdout, stderr }).toMatchObject({ status: 0, stdout: expect.stringContaining('exit 7, 2\n') })
    const { checks } = JSON.parse(stdout.slice(0, stdout.indexOf('\n'))) as {
      checks: { name: string; detail: string }[]
    }
    expect(checks.find(({ name }) => name === 'tracer')!.detail).toMatch(tracer)
    expect(stdout).toMatch(/ 3 {2}sh -c 'exit 3'\n.* rm -rf gone {2}\[guarded by snap_\w+\]/)
    expect(stdout).toMatch(/opened for writing .*\n {2}by sh -c 'echo 2 > a/)
    expect(await guardedState()).toEqual(atGuard)
    isBack()
  })
}

gated(possible, needs, 'without seccomp notification: ptrace takes over; without a tracer it is watched', () => {
  const script = (tracer: string) => `${savepointInShell} run -q --tracer ${tracer} -- sh -c 'echo 2 > a; rm -rf gone'`
  const both = ['ptrace', 'none'].map(tracer => `${script(tracer)} && cat a && ${own} undo -q`).join(' && ')
  expect(inContainer(both)).toMatchObject({ status: 0, stdout: expect.stringMatching(/^2\n[^2]*2\n[^2]*$/) })
  isBack()
})

gated(possible, needs, 'a container inside a run: what it changes in the target is known', async () => {
  const script = 'echo 2 > a; mkdir new; echo 3 > new/c'
  const container = containerCommand(
    space.base,
    ['sh', '-ec', script],
    [...['-v', `${space.dir}:/elsewhere`, '-w', '/elsewhere']],
  )
  const words = container.map(word => `'${word}'`).join(' ')
  const run = [...builtCommand, 'run', '-q', '--', 'sh', '-ec', `${words}; rm -rf gone`]
  expect(start(run)).toMatchObject({ status: 0 })
  expect([space.read('a'), space.read('new/c')]).toEqual(['2\n', '3\n'])
  // Whether that took a look at everything depends on what podman's own processes do to each other's files.
  expect((await guardedState()).slice(1)).toEqual(atGuard.slice(1))
  const savepoint = await space.open()
  const [cause] = savepoint.why('a').causes
  expect(cause!.execution!.argv).toEqual(['sh', '-ec', script])
  await savepoint.undo()
  isBack()
})
