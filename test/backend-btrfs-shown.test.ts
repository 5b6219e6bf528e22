/** What faces show of a snapshot that btrfs keeps and that cannot be read now. */
import { renameSync } from 'node:fs'
import { dirname } from 'node:path'
import { afterEach, expect } from 'vitest'
import { onBtrfs, useScene } from './support/backend-scene.ts'
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
