/** A savepoint.yaml that a run wrote takes effect only when a person trusts it. */
import { rmSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { startRun, useRuns } from './support/background-run.ts'
import { savepoint, savepointInShell, savepointJson } from './support/built-cli.ts'
import type { Workspace } from './support/workspace.ts'

const OFF = 'snapshots:\n  disabled: true\n'
const untrusted = /a run changed savepoint\.yaml: it takes effect only after `savepoint trust`/

let space: Workspace
useRuns(made => {
  space = made
})

const run = (script: string, ...args: string[]) => savepoint(space, ['run', ...args, '--', 'sh', '-c', script])
const writing = (text: string) => `printf '${text.replaceAll('\n', '\\n')}' > savepoint.yaml`

describe.each(['auto', 'none'])('tracer %s', tracer => {
  const agent = (script: string) => run(script, '--tracer', tracer)

  it('until then the version from before counts; trust shows what it weakens', () => {
    expect(agent(writing(OFF)).stderr).toMatch(untrusted)
    const before = savepoint(space, ['snapshot'])
    expect(before).toMatchObject({ status: 0, stderr: expect.stringMatching(untrusted) })
    expect(savepointJson(space, ['trust', '--dry-run'])).toEqual({
      untrusted: true,
      trusted: false,
      dry_run: true,
      weakens: ['snapshots are off'],
    })
    const { status, stdout } = savepoint(space, ['trust'])
    expect({ status, stdout }).toEqual({
      status: 0,
      stdout: 'It weakens protection: snapshots are off\nsavepoint.yaml takes effect from now on\n',
    })
    const after = savepoint(space, ['snapshot'])
    expect(after.status).toBe(1)
    expect(after.stderr).toContain('weakens protection: snapshots are off')
    expect(savepoint(space, ['trust']).stdout).toMatch(/^Nothing to trust/)
  })

  it('the version from before is the one that was trusted, also over several runs', () => {
    space.write('savepoint.yaml', 'snapshots:\n  exclude:\n    additional: ["*.log"]\n')
    agent(writing(OFF))
    agent(writing('snapshots:\n  triggers:\n    disable_pre_run: true\n'))
    agent('touch x.log y')
    const { stdout, stderr } = savepoint(space, ['coverage', 'x.log'])
    expect(stderr).toMatch(untrusted)
    expect(stdout).toContain('*.log')
    // Going back to either version of an agent's does not make it trusted.
    space.write('savepoint.yaml', OFF)
    expect(savepoint(space, ['snapshot'])).toMatchObject({ status: 0, stderr: expect.stringMatching(untrusted) })
  })

  it('a file that it removed counts on', () => {
    space.write('savepoint.yaml', 'snapshots:\n  exclude:\n    keep: ["precious"]\n')
    space.write('.gitignore', 'precious\n')
    space.write('precious', 'p')
    agent('rm savepoint.yaml')
    const { stdout, stderr } = savepoint(space, ['coverage', 'precious'])
    expect(stderr).toMatch(untrusted)
    expect(stdout).not.toContain('NOT')
  })

  it('one that is no configuration at all does not stop anything', () => {
    agent("printf 'snapshots: [' > savepoint.yaml")
    expect(savepoint(space, ['snapshot']).status).toBe(0)
    expect(agent('true').status).toBe(0)
    expect(savepoint(space, ['trust']).status).toBe(2)
  })
})

it('what a person writes takes effect at once, also after an agent’s version', () => {
  run(writing(OFF))
  space.write('savepoint.yaml', `${OFF}# mine\n`)
  expect(savepoint(space, ['snapshot']).status).toBe(1)
  rmSync(space.at('savepoint.yaml'))
  expect(savepoint(space, ['snapshot'])).toMatchObject({ status: 0, stderr: '' })
})

it('undo of the run leaves nothing to trust', () => {
  run(writing(OFF))
  expect(savepoint(space, ['undo']).status).toBe(0)
  expect(savepoint(space, ['snapshot'])).toMatchObject({ status: 0, stderr: '' })
})

it('a process of a run cannot trust', () => {
  run(writing(OFF))
  const { status, stderr } = run(`${savepointInShell} trust`)
  expect(status).toBe(1)
  expect(stderr).toMatch(/Cannot trust a configuration: this is a process of run_/)
})

it('during the run its version holds, whoever writes; by the trace, what another wrote then counts at its end', async () => {
  const agent = await startRun(space, `read x; ${savepointInShell} snapshot -m inside && echo TAKEN`)
  space.write('savepoint.yaml', OFF)
  expect(savepoint(space, ['snapshot', '-m', 'meanwhile'])).toMatchObject({ status: 0 })
  agent.say('go')
  const { stdout, stderr } = await agent.ended
  expect(stdout).toContain('TAKEN')
  expect(stderr).not.toMatch(untrusted)
  expect(savepoint(space, ['snapshot']).status).toBe(1)
})

it('when the supervisor is killed, too', async () => {
  const agent = await startRun(space, `${writing(OFF)}; READY; read x`)
  agent.child.kill('SIGKILL')
  await agent.ended
  expect(savepoint(space, ['snapshot'])).toMatchObject({ status: 0, stderr: expect.stringMatching(untrusted) })
  expect(savepoint(space, ['redo']).stderr).toMatch(/ended without us/)
  expect(savepoint(space, ['snapshot'])).toMatchObject({ status: 0, stderr: expect.stringMatching(untrusted) })
  expect(savepoint(space, ['trust']).stdout).toContain('snapshots are off')
})
