/** A signal that comes when the helper of a run is just being started is the command's, which then does not begin. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { TracedCommand } from '../src/tracers/helper.ts'
import { startTraced } from './support/traced-command.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
})
afterEach(() => space.remove())

let hasDied = false
function start(): TracedCommand {
  hasDied = false
  const onHelperDied = () => {
    hasDied = true
  }
  return startTraced(space, { driver: 'none', command: ['sleep', '60'], onHelperDied })
}

it.each(['SIGINT', 'SIGTERM'] as const)('%s', async signal => {
  const command = start()
  command.kill(signal)
  expect(await command.ended).toMatchObject({ signal })
  expect(hasDied).toBe(false)
})
