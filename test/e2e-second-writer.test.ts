/** Two commands at once: the second one waits, or says who is at work; a dead one holds nobody up. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { builtCommand, savepoint, savepointJson } from './support/built-cli.ts'
import { dialogue, smallWorkspace } from './support/dialogue.ts'
import { noise } from './support/tree-ops.ts'
import type { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = smallWorkspace()
})
afterEach(() => space.remove())

const { take } = dialogue(() => space)

describe('a second writer', () => {
  it('11 with the number of the process that is at work; looking works meanwhile; afterwards both are done', async () => {
    take('-m', 'first')
    for (let i = 0; i < 40; i++) space.write(`large/${i}`, noise(2_000_000, i))
    const [program, ...args] = builtCommand
    const first = spawn(program!, [...args, 'snapshot', '-m', 'slow'], {
      cwd: space.dir,
      env: space.env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const ended = once(first, 'exit')
    await lockHeldBy(first.pid!)
    first.kill('SIGSTOP')
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
      first.kill('SIGCONT')
    }
    expect(await ended).toEqual([0, null])
    expect(savepoint(space, ['status']).stdout).not.toContain('Busy')
    expect(savepointJson(space, ['snapshots']).map((one: { label: string }) => one.label)).toEqual(['slow', 'first'])
  })

  it('a process that was killed while it wrote holds nobody up', async () => {
    take('-m', 'first')
    for (let i = 0; i < 40; i++) space.write(`large/${i}`, noise(2_000_000, i))
    const [program, ...args] = builtCommand
    const first = spawn(program!, [...args, 'snapshot'], { cwd: space.dir, env: space.env, stdio: 'ignore' })
    const ended = once(first, 'exit')
    await lockHeldBy(first.pid!)
    first.kill('SIGKILL')
    await ended
    expect(savepoint(space, ['snapshot', '-m', 'after'])).toMatchObject({ status: 0, stderr: '' })
    expect(savepoint(space, ['verify']).status).toBe(0)
    expect(savepointJson(space, ['snapshots'])).toHaveLength(2)
  })

  async function lockHeldBy(pid: number): Promise<void> {
    const timelines = join(space.home, 'timelines')
    const [id] = readdirSync(timelines)
    for (let i = 0; i < 3000; i++) {
      if (readFileSync(join(timelines, id!, 'lock'), 'utf8').startsWith(`${pid} `)) return
      await pause(3)
    }
    throw new Error(`process ${pid} never took the lock`)
  }
})
