/** What is too large for the store, or could not be read, lies only in what btrfs keeps: it does not go without a word. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect } from 'vitest'
import { onBtrfs, useScene } from './support/backend-scene.ts'
import { builtCommand, savepoint as runCli, savepointJson } from './support/built-cli.ts'
import { onTerminal } from './support/terminal.ts'
import type { Workspace } from './support/workspace.ts'

const scene = onBtrfs()
let space: Workspace
const onDisk = useScene(scene, made => {
  space = made
  mkdirSync(space.home)
})

const configure = (more: string) =>
  writeFileSync(join(space.home, 'config.yaml'), `snapshots: {max_file_bytes: 1 MB${more}}\n`)

const take = (label: string): string => runCli(space, ['snapshot', '-q', '-m', label]).stdout.trim()
const kept = () => scene.kept(space).map(path => basename(path))

onDisk('native_max leaves it there, and prune --dry-run says why', () => {
  configure(', retention: {native_max: 1}')
  space.write('.savepointignore', '*.log\n')
  space.write('huge.log', Buffer.alloc(2_000_000))
  const whole = take('whole')
  space.write('model.bin', Buffer.alloc(2_000_000, 1))
  const good = take('good')
  space.write('model.bin', Buffer.alloc(2_000_000, 2))
  const bad = take('bad')
  const why = `${good} stays in btrfs, beyond its limit: only there is its model.bin (too-large); delete it if that is not needed`
  expect(runCli(space, ['status']).stderr).toContain(why)
  // What rules exclude is by somebody's wish no part of a snapshot.
  expect([kept().sort(), kept().includes(whole)]).toEqual([[good, bad].sort(), false])
  const { stdout, stderr } = runCli(space, ['prune', '--dry-run'])
  expect([stdout.includes('to the store alone'), stderr]).toEqual([false, expect.stringContaining(why)])
})

onDisk('purge names it: in the question, in the result, and in the history', async () => {
  configure('')
  space.write('key')
  space.write('data/model.bin', Buffer.alloc(2_000_000, 1))
  const [one, two] = [take('one'), take('two')]
  rmSync(space.at('data/model.bin'))
  take('three')
  const lost = `data/model.bin (too-large) of ${one}, ${two}`
  const asked = await onTerminal([...builtCommand, 'purge', 'key'], [{ wait: 'y/N\\] ', type: 'n\n' }], {
    cwd: space.dir,
    env: space.env,
  })
  const beside = 'with what ignore rules exclude and what could not be captured; the store has the rest of them'
  expect(asked.output.replaceAll('\r\n', ' ')).toContain(
    `That also removes 3 snapshots that btrfs keeps, ${beside}. The store does not have ${lost}. This cannot be undone.`,
  )
  expect(kept()).toHaveLength(3)
  const { stdout } = runCli(space, ['purge', 'key', '--yes', '--quiet'])
  expect(stdout).toBe(`Gone with that, as the store does not have it: ${lost}\n`)
  const { kind, summary } = savepointJson(space, ['log', '--operations']).at(-1)
  expect([kind, summary]).toEqual([
    'purge',
    `purge key; left 3 snapshots to the store alone (was: btrfs), without what only that had: ${lost}`,
  ])
  expect(kept()).toEqual([])
})

onDisk('what is purged itself is not called lost', async () => {
  configure('')
  space.write('model.bin', Buffer.alloc(2_000_000, 1))
  space.write('other.bin', Buffer.alloc(2_000_000, 2))
  const one = take('one')
  const skipped = (path: string) => ({ path, reason: 'too-large' })
  const savepoint = await space.open()
  const left = (path: string) => savepoint.leftByPurge(path)
  expect(left('key')).toMatchObject([{ snapshot: one, lost: ['model.bin', 'other.bin'].map(skipped), lostCount: 2 }])
  expect(left('model.bin')).toMatchObject([{ lost: [skipped('other.bin')], lostCount: 1 }])
  expect(savepointJson(space, ['purge', 'model.bin', '--yes']).left_to_store).toEqual([
    { snapshot: one, backend: 'btrfs', lost: [skipped('other.bin')], lost_count: 1 },
  ])
})
