/** What faces show of a snapshot that btrfs keeps and that cannot be read now, and of mounts. */
import { mkdirSync, renameSync } from 'node:fs'
import { dirname } from 'node:path'
import { afterEach, expect } from 'vitest'
import { onBtrfs, run, useScene } from './support/backend-scene.ts'
import { closeMcpClients, connectMcp } from './support/mcp-client.ts'
import type { Workspace } from './support/workspace.ts'

const scene = onBtrfs()
let space: Workspace
const onDisk = useScene(scene, made => {
  space = made
})
afterEach(closeMcpClients)

/** Its label is "away". Gives its id. */
async function takeAway(): Promise<string> {
  space.write('a', '1\n')
  const { id } = await (await space.open({ leaveUnread: true })).snapshot({ label: 'away' })
  const place = dirname(scene.kept(space)[0]!)
  renameSync(place, `${place}.away`)
  return id
}

onDisk('one that cannot be read now is listed over MCP as not read', async () => {
  const id = await takeAway()
  const mcp = await connectMcp(space)
  for (const name of ['snapshots_list', 'snapshots_log']) {
    const { text, data } = await mcp.call(name)
    expect(text).toMatch(new RegExp(`^${id} .*"away" {2}not read yet {2}\\(HEAD\\)`, 'm'))
    expect(data.snapshots).toMatchObject([{ id, read: false }])
  }
})

onDisk('what is mounted in it is told over MCP, in each form', async () => {
  const names = Array.from({ length: 22 }, (_, i) => `m${i + 10}`)
  for (const name of names) {
    mkdirSync(space.at(name))
    run('mount', '--bind', space.at(name), space.at(name))
  }
  try {
    await (await space.open()).snapshot({ label: 'one' })
  } finally {
    for (const name of names) run('umount', space.at(name))
  }
  const mcp = await connectMcp(space)
  const { text, data } = await mcp.call('snapshots_show', { checkpoint: 'one' })
  expect(text.match(/^Not in it: .*$/gm)!.slice(-2)).toEqual([
    'Not in it: m29 (a mount or nested subvolume)',
    'Not in it: 2 more of those',
  ])
  expect(data).toMatchObject({ mounts: names.slice(0, 20), more_mounts: 2 })
  const json = await mcp.call('snapshots_show', { checkpoint: 'one', format: 'json' })
  expect(JSON.parse(json.text)).toMatchObject({ mounts: names.slice(0, 20), more_mounts: 2 })
})
