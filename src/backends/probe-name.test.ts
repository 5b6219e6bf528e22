import { spawnSync } from 'node:child_process'
import { afterEach, expect, it, vi } from 'vitest'
import { isLeftProbe, isProbe, newProbeName } from './probe-name.ts'

afterEach(() => void vi.useRealTimers())

/** As another process would have named it. */
const named = (change: (fields: string[]) => void): string => {
  const fields = newProbeName().split('.')
  change(fields)
  return `.${fields.join('.')}`
}
const DEAD = spawnSync(process.execPath, ['--version']).pid.toString(36)

it('is a probe, wherever the name is put', () => {
  for (const name of [`.${newProbeName()}`, `pool/a@savepoint-key-${newProbeName()}`])
    expect([isProbe(name), isLeftProbe(name)]).toEqual([true, false])
  for (const name of ['snap_probe', '.probe-', 'pool/a@savepoint-probe-0a0a0a0a-snap_1', `x${newProbeName()}`])
    expect([isProbe(name), isLeftProbe(name)]).toEqual([false, false])
})

it('is left when its process is gone, which only tells where that can be seen; and after a while', () => {
  const dead = named(fields => {
    fields[2] = DEAD
  })
  const elsewhere = named(fields => {
    fields[1] = '1'
    fields[2] = DEAD
  })
  const ours = named(() => {})
  expect([dead, elsewhere, ours].map(isLeftProbe)).toEqual([true, false, false])
  vi.useFakeTimers({ now: Date.now() + 11 * 60_000 })
  expect([dead, elsewhere, ours].map(isLeftProbe)).toEqual([true, true, true])
})
