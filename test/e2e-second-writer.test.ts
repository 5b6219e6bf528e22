/** Two commands at once: the second one waits, or says who is at work; a dead one holds nobody up. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { builtCommand, savepoint, savepointJson } from './support/built-cli.ts'
import { dialogue, smallWorkspace } from './support/dialogue.ts'
import type { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = smallWorkspace()
})
afterEach(() => space.remove())

const { take } = dialogue(() => space)

/** A snapshot that waits in the middle of its capture, with the lock, until `go` exists. */
async function slowSnapshot(): Promise<{ first: ChildProcess; ended: Promise<unknown[]>; goOn: () => void }> {
  const go = join(space.base, 'go')
  const [program, ...args] = builtCommand
  const first = spawn(program!, [...args, 'snapshot', '-m', 'slow'], {
    cwd: space.dir,
    env: { ...space.env, SAVEPOINT_FAILPOINT: `capture:walking~${go}` },
    stdio: 'ignore',
  })
  const ended = once(first, 'exit')
  const timelines = join(space.home, 'timelines')
  const lock = join(timelines, readdirSync(timelines)[0]!, 'lock')
  await vi.waitUntil(() => readFileSync(lock, 'utf8').startsWith(`${first.pid} `), { timeout: 60_000 })
  return { first, ended, goOn: () => writeFileSync(go, '') }
}

describe('a second writer', () => {
  it('11 with the number of the process that is at work; looking works meanwhile; afterwards both are done', async () => {
    take('-m', 'first')
    space.write('a.txt', 'two\n')
    const { first, ended, goOn } = await slowSnapshot()
    try {
      const env = { ...space.env, SAVEPOINT_LOCK_WAIT_MS: '200' }
      const second = savepoint(space, ['snapshot'], { env })
      expect(second).toMatchObject({ status: 11, stdout: '' })
      expect(second.stderr).toMatch(
        new RegExp(`^savepoint: Cannot .*: process ${first.pid} is at work \\(.*\\)\\n {2}hint: .*ps -p ${first.pid}`),
      )
      expect(JSON.parse(savepoint(space, ['snapshot', '--json'], { env }).stderr).error).toMatchObject({
        code: 'busy',
        data: { holder: { pid: first.pid } },
      })
      expect(savepoint(space, ['run', '--', 'touch', 'made'], { env })).toMatchObject({
        status: 125,
        stderr: expect.stringContaining(`process ${first.pid}`),
      })
      expect(existsSync(space.at('made'))).toBe(false)
      for (const verb of ['log', 'snapshots', 'operations']) expect(savepoint(space, [verb], { env }).status).toBe(0)
      expect(savepoint(space, ['status'], { env }).stdout).toContain(`Busy: process ${first.pid} (`)
    } finally {
      goOn()
    }
    expect(await ended).toEqual([0, null])
    expect(savepoint(space, ['status']).stdout).not.toContain('Busy')
    expect(savepointJson(space, ['snapshots']).map((one: { label: string }) => one.label)).toEqual(['slow', 'first'])
  })

  it('a process that was killed while it wrote holds nobody up', async () => {
    take('-m', 'first')
    space.write('a.txt', 'two\n')
    const { first, ended } = await slowSnapshot()
    first.kill('SIGKILL')
    await ended
    expect(savepoint(space, ['snapshot', '-m', 'after'])).toMatchObject({ status: 0, stderr: '' })
    expect(savepoint(space, ['verify']).status).toBe(0)
    expect(savepointJson(space, ['snapshots'])).toHaveLength(2)
  })
})
