/** What the log of events says around a snapshot that btrfs keeps and that is read after the next one was taken. */
import { renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { expect } from 'vitest'
import { onBtrfs, useScene } from './support/backend-scene.ts'
import { runCli } from './support/cli.ts'
import type { Workspace } from './support/workspace.ts'

const scene = onBtrfs()
let space: Workspace
const onDisk = useScene(scene, made => {
  space = made
})

onDisk('what the parent of one turns out to have is told once, and what came since is told against it', async () => {
  const inStore = { env: { ...space.env, SAVEPOINT_BACKEND: 'cas' } }
  for (const name of ['a', 'back']) space.write(name, '1\n')
  await (await space.open(inStore)).snapshot({ label: 'two' })
  rmSync(space.at('a'))
  space.write('c', 'c\n')
  space.write('later', 'c\n')
  space.write('dir/x', 'x\n')
  space.write('back', '2\n')
  await (await space.open({ leaveUnread: true })).snapshot({ label: 'three' })
  const place = dirname(scene.kept(space)[0]!)
  renameSync(place, `${place}.away`)
  space.write('d', 'd\n')
  space.write('later', 'changed\n')
  space.write('dir/y', 'y\n')
  space.write('back', '1\n')
  await (await space.open({ ...inStore, leaveUnread: true })).snapshot({ label: 'four' })
  renameSync(`${place}.away`, place)
  const savepoint = await space.open()
  const { events } = savepoint.events({ limit: 1000 })
  const { createdAt } = savepoint.find('three')
  const told = (isMeant: (at: number) => boolean) =>
    events.flatMap(event => (event.kind === 'file' && isMeant(event.at) ? [`${event.action} ${event.event.path}`] : []))
  expect(told(at => at === createdAt).sort()).toEqual([
    ...['created c', 'created dir', 'created later', 'deleted a', 'modified back'],
  ])
  expect(told(at => at > createdAt).sort()).toEqual(['created d', 'created dir/y', 'modified back', 'modified later'])
  const { id, counts } = savepoint.find('four')
  expect(counts).toMatchObject({ added: 2, modified: 2, deleted: 0 })
  expect(runCli(space, ['events']).stdout).toContain(`${id} manual, 4 changed paths`)
  // The next one is told as ever.
  space.write('c', 'changed\n')
  await savepoint.snapshot({ label: 'five' })
  expect(runCli(space, ['events']).stdout).toMatch(/modified +c /)
})
