/** A target whose rollback needs every kind of step, and what must hold after whatever happened to a command on it. */
import { chmodSync, existsSync, linkSync, readdirSync, rmSync, symlinkSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Savepoint } from '../../src/index.ts'
import { differences, imageOf } from './tree-image.ts'
import { Workspace } from './workspace.ts'

export type Image = Map<string, string>

export interface FaultScene {
  workspace: Workspace
  /** Of the snapshots `one` and `two`, and of the live tree, which is neither. */
  one: Image
  two: Image
  live: Image
}

/** Two named snapshots, then more edits. From `live` back to `one`: creations, deletions, replacements, swaps, modes. */
export async function faultScene(): Promise<FaultScene> {
  const workspace = new Workspace()
  const savepoint = await workspace.open()
  for (const path of ['kept', 'edited', 'removed', 'deep/a/b', 'swap/inside', 'deep/other']) workspace.write(path)
  workspace.write('wasfile')
  linkSync(workspace.at('kept'), workspace.at('hard'))
  symlinkSync('kept', workspace.at('link'))
  await savepoint.snapshot({ label: 'one' })
  const one = imageOf(workspace.dir)
  mutate(workspace)
  await savepoint.snapshot({ label: 'two' })
  const two = imageOf(workspace.dir)
  workspace.write('edited', 'live edit')
  workspace.write('fresh/new', 'made after the last snapshot')
  const live = imageOf(workspace.dir)
  return { workspace, one, two, live }
}

function mutate(workspace: Workspace): void {
  workspace.write('edited', 'second version')
  rmSync(workspace.at('removed'))
  rmSync(workspace.at('deep/a'), { recursive: true })
  rmSync(workspace.at('swap'), { recursive: true })
  workspace.write('swap', 'a file now')
  rmSync(workspace.at('wasfile'))
  workspace.write('wasfile/inside', 'a directory now')
  rmSync(workspace.at('link'))
  symlinkSync('edited', workspace.at('link'))
  chmodSync(workspace.at('deep'), 0o700)
  utimesSync(workspace.at('deep/other'), 1, 2)
  workspace.write('added/file', 'added')
}

/** Everything below the workspace's home, with sizes of files, to see what is left behind. */
export function homeFiles(workspace: Workspace): string[] {
  return (readdirSync(workspace.home, { recursive: true }) as string[]).sort()
}

/** No stage in the target; no journal and no temporary file in the home. */
export function expectNoLeftovers(workspace: Workspace): void {
  expect(readdirSync(workspace.dir).filter(name => name.startsWith('.savepoint-'))).toEqual([])
  expect(homeFiles(workspace).filter(file => /tmp|restore\.json$/.test(file))).toEqual([])
}

/** The store is whole, and both named snapshots can still be read to the last byte. */
export async function expectIntact(savepoint: Savepoint, scene: FaultScene): Promise<void> {
  const { problems } = await savepoint.verify()
  expect(problems).toEqual([])
  for (const [label, image] of [
    ['one', scene.one],
    ['two', scene.two],
  ] as const) {
    const to = join(scene.workspace.base, `check-${label}`)
    await savepoint.rollback(label, { to, all: true })
    expect(differences(image, imageOf(to))).toEqual([])
    rmSync(to, { recursive: true })
  }
  expect(existsSync(scene.workspace.dir)).toBe(true)
}
