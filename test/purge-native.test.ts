/** X3 where a filesystem keeps snapshots: they have more than was captured, and more directories than the one in question. */
import { rmSync } from 'node:fs'
import { expect } from 'vitest'
import { onBtrfs, useScene } from './support/backend-scene.ts'
import { builtCommand, savepoint, savepointJson } from './support/built-cli.ts'
import { onTerminal } from './support/terminal.ts'
import type { Workspace } from './support/workspace.ts'

const scene = onBtrfs()
let space: Workspace
const onDisk = useScene(scene, made => {
  space = made
  space.write('.savepointignore', '*.db\n')
  space.write('local.db')
  space.write('key')
})

const take = (label: string): string => savepoint(space, ['snapshot', '-q', '-m', label]).stdout.trim()

onDisk('says what goes with it: in the question, in the result, and in the history', async () => {
  const ids = [take('one'), take('two')]
  rmSync(space.at('key'))
  const beside = (keeps: string) =>
    `2 snapshots that btrfs ${keeps}, with what ignore rules exclude; the store has the rest of them`
  const question = `from all snapshots\\? That also removes ${beside('keeps')}\\. This cannot be undone\\.`
  const asked = await onTerminal([...builtCommand, 'purge', 'key'], [{ wait: 'y/N\\] ', type: 'n\n' }], {
    cwd: space.dir,
    env: space.env,
  })
  expect(asked.output.replaceAll('\r\n', ' ')).toMatch(new RegExp(question))
  expect(scene.kept(space)).toHaveLength(2)
  expect(savepoint(space, ['purge', 'key', '--yes']).stdout).toMatch(
    new RegExp(`^Purged key: 1 version in 2 snapshots, .* freed\nRemoved, too: ${beside('kept')}\n$`),
  )
  expect(scene.kept(space)).toEqual([])
  const summary = 'purge key; left 2 snapshots to the store alone (was: btrfs)'
  expect(savepointJson(space, ['log', '--operations']).at(-1)).toMatchObject({ kind: 'purge', summary })
  expect(savepoint(space, ['events']).stdout).toContain(summary)
  // From now on nothing goes with one.
  space.write('key', 'another\n')
  expect(savepointJson(space, ['snapshot', '--backend', 'cas'])).toMatchObject({ backend: 'cas' })
  expect(savepointJson(space, ['purge', 'key', '--yes']).left_to_store).toEqual([])
  const third = take('three')
  expect(savepointJson(space, ['purge', 'key', '--yes']).left_to_store).toEqual([{ snapshot: third, backend: 'btrfs' }])
  expect(ids).not.toContain(third)
})
