/** Recordings that begin and end while somebody else looks for such as were left. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { abandonedRecordings, holdAbandoned, startRecording } from '../src/record/recording.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
})
afterEach(() => space.remove())

const start = { command: ['x'], cwd: '/', pid: process.pid } as unknown as Parameters<typeof startRecording>[1]

const recordings = `
import { removeRecording, startRecording } from '${new URL('../src/record/recording.ts', import.meta.url)}'
for (let i = 0; i < 500; i++) {
  const { directory, held } = startRecording(process.env.SAVEPOINT_HOME, ${JSON.stringify(start)})
  removeRecording(directory)
  held.release()
}`

it('neither fails, and none is taken for one that was left', async () => {
  const child = spawn(process.execPath, ['--input-type=module', '-e', recordings], {
    env: { ...space.env, SAVEPOINT_HOME: space.home },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let stderr = ''
  child.stderr.on('data', text => {
    stderr += text
  })
  const ended = once(child, 'close')
  const found: unknown[] = []
  let looks = 0
  while (child.exitCode === null && child.signalCode === null) {
    found.push(...abandonedRecordings(space.home))
    if (++looks % 10 === 0) await turn()
  }
  await ended
  expect([child.exitCode, stderr, found]).toEqual([0, '', []])
})

it('one that is held is finished by nobody else', () => {
  const { directory, held } = startRecording(space.home, start)
  const name = directory.split('/').at(-1)!
  expect(() => holdAbandoned(space.home, name)).toThrow('it goes on, or its bundle is being written')
  held.release()
  using _ = holdAbandoned(space.home, name).held
  expect(() => holdAbandoned(space.home, name)).toThrow('it goes on, or its bundle is being written')
})
