/** A command that waits for another one ends at once when it is told to. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, beforeEach, expect, it, test } from 'vitest'
import { tryLock } from '../src/store/file-lock.ts'
import { builtCommand, savepoint, savepointJson } from './support/built-cli.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
  space.write('a.txt', 'one\n')
  expect(savepoint(space, ['snapshot']).status).toBe(0)
})
afterEach(() => space.remove())

const timelineLock = () => join(space.home, 'timelines', readdirSync(join(space.home, 'timelines'))[0]!, 'lock')
const storeLock = () => join(space.home, 'store/gc.lock')
/** Far longer than the test may take: only the signal can end the wait. */
const PATIENT = { SAVEPOINT_LOCK_WAIT_MS: '3600000' }

async function signalled(args: string[], signal: NodeJS.Signals): Promise<{ code: number | null; stderr: string }> {
  const [program, ...before] = builtCommand
  const child = spawn(program!, [...before, ...args], { cwd: space.dir, env: { ...space.env, ...PATIENT } })
  const ended = once(child, 'close')
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', text => {
    stderr += text
  })
  await handlesSignals(child.pid!)
  child.kill(signal)
  const [code] = await ended
  return { code, stderr }
}

/** SIGHUP is the last that a command catches, and none that node does: from then on signals ask the command to stop. */
async function handlesSignals(pid: number): Promise<void> {
  for (;;) {
    const caught = /^SigCgt:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]!
    if ((BigInt(`0x${caught}`) & 1n) !== 0n) return
    await pause(5)
  }
}

test.each([['snapshot'], ['run', '--', 'touch', 'made'], ['undo'], ['gc']])(
  'Ctrl-C while `%s` waits for the timeline: 130 at once, nothing was done',
  async (...args) => {
    using _held = tryLock(timelineLock(), 'exclusive', 'hold it')!
    const { code, stderr } = await signalled(args, 'SIGINT')
    expect({ code, stderr }).toMatchObject({ code: 130, stderr: expect.stringMatching(/cancelled/i) })
    expect(existsSync(space.at('made'))).toBe(false)
    expect(savepointJson(space, ['snapshots'])).toHaveLength(1)
  },
)

it('the same for a capture that waits for a collection, and for other signals with their own codes', async () => {
  using _held = tryLock(storeLock(), 'exclusive', 'collect')!
  expect((await signalled(['snapshot'], 'SIGINT')).code).toBe(130)
  expect((await signalled(['snapshot'], 'SIGTERM')).code).toBe(143)
})
