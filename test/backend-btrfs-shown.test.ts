/** What faces show of a snapshot that btrfs keeps and that cannot be read now, or is none any more, and of mounts. */
import { mkdirSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { afterEach, expect } from 'vitest'
import { quoteWord } from '../src/model/shell-quote.ts'
import { onBtrfs, run, useScene } from './support/backend-scene.ts'
import { savepointJson } from './support/built-cli.ts'
import { runCli } from './support/cli.ts'
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

onDisk('one that cannot be read now is shown with what is known of it', async () => {
  await (await space.open({ env: { ...space.env, SAVEPOINT_BACKEND: 'cas' } })).snapshot({ label: 'before' })
  const id = await takeAway()
  const { status, stdout } = runCli(space, ['show', 'away', '--stat'])
  expect([status, stdout]).toEqual([
    0,
    expect.stringMatching(
      new RegExp(
        `^${id} \\(HEAD\\)\n +type +manual\n +label +away\n[\\s\\S]*content +not read yet\n[\\s\\S]*kept +/.*${id}\n +changes +not read yet\n`,
      ),
    ),
  ])
  expect(savepointJson(space, ['show', id])).toMatchObject({ id, label: 'away', read: false, changes: null })
  const mcp = await connectMcp(space)
  const { text, data } = await mcp.call('snapshots_show', { checkpoint: id })
  expect(text).toMatch(/ not read yet .*\nOnly btrfs keeps it until now: what it holds is not known\n/)
  expect(data).toMatchObject({ snapshot: { id, read: false }, changes: [] })
  const list = await mcp.call('snapshots_list', { include_changes: true })
  expect(list.data.snapshots).toMatchObject([{ id, read: false, changes: [] }, {}])
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

onDisk('of many that no history knows ten are named, and all for programs', async () => {
  await (await space.open()).snapshot({ label: 'one' })
  const [one] = scene.kept(space)
  const strays = Array.from({ length: 12 }, (_, i) => `${one}-${String(i).padStart(2, '0')}`)
  for (const path of strays) run('btrfs', 'subvolume', 'snapshot', '-r', one!, path)
  const { stderr } = runCli(space, ['verify'])
  expect(stderr).toContain(
    `${strays[9]}, and 2 more that \`savepoint verify --json\` names (was ${space.home} put back`,
  )
  const { ok, strays: all } = savepointJson(space, ['verify'])
  const shown = (where: string) => ({
    target: space.dir,
    backend: 'btrfs',
    name: where.slice(dirname(where).length + 1),
    where,
    by_hand: `btrfs subvolume delete ${quoteWord(where)}`,
  })
  expect([ok, all]).toEqual([true, strays.map(shown)])
})

onDisk(
  'a home that was copied whole, and the copy put in its place: what was read is good, and the rest is named',
  async () => {
    space.write('a', '1\n')
    const say = (...args: string[]) => runCli(space, args)
    say('snapshot', '-q', '-m', 'one')
    say('diff', 'one')
    const [kept] = scene.kept(space)
    space.sh(`mv '${space.home}' ../original; cp -a ../original '${space.home}'`)
    expect(say('verify')).toMatchObject({ status: 0, stdout: expect.stringMatching(/^All good: /), stderr: '' })
    const purged = say('purge', 'a', '--yes')
    expect([purged.status, purged.stderr]).toEqual([
      1,
      expect.stringMatching(/Cannot complete the purge: .* copy what you want of this directory, and remove it\)/),
    ])
    rmSync(kept!, { recursive: true })
    expect(say('gc').status).toBe(0)
    expect(say('verify')).toMatchObject({ status: 0, stderr: '' })
  },
)
