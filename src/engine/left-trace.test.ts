import { Socket } from 'node:net'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { Workspace } from '../../test/support/workspace.ts'
import type { Context } from './context.ts'
import { leftOf, traceLeft } from './left-trace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
})
afterEach(() => space.remove())

it('where the helper is gone the run ends as it did, and its trace says that it has no end', () => {
  space.sh('mkdir -p runs/run_a')
  const ctx = {
    home: space.home,
    timelineDir: space.dir,
    targetPath: Buffer.from(space.dir),
    env: {},
    config: { snapshots: { min_free_bytes: 0 } },
  } as Context
  const channel = new Socket()
  channel.destroy()
  traceLeft(ctx, 'run_a', { quick: [], other: [] }, channel)
  expect(leftOf(ctx, 'run_a')).toBe('cut')
})
