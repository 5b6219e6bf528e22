/** Which filesystem keeps the snapshots itself, if any does: the order in which they are asked, and what each said. */
import { apfs } from './apfs.ts'
import { archivesIn } from './archive.ts'
import { btrfs } from './btrfs.ts'
import type { Keeper, NativeBackend, Probe, Where } from './native-backend.ts'
import { tmutil } from './tmutil.ts'
import { zfs } from './zfs.ts'

/** In the order of `auto`. */
export const nativeBackends: readonly NativeBackend[] = [apfs, zfs, btrfs]

export const nativeBackend = (name: string): NativeBackend | undefined =>
  [...nativeBackends, tmutil].find(backend => backend.name === name)

/** Whoever keeps states of the timeline in `directory` under that name; undefined: the store does. */
export const keeperOf = (name: string, directory: string): Keeper | undefined =>
  name === 'archive' ? archivesIn(directory) : nativeBackend(name)

export interface Probed {
  backend: NativeBackend
  probe: Probe
}

/** All that were asked, up to the first that works. */
export function probeNative(target: Buffer, where: Where): Probed[] {
  const probed: Probed[] = []
  for (const backend of nativeBackends) {
    const probe = backend.probe(target, where)
    probed.push({ backend, probe })
    if (probe.works) break
  }
  return probed
}
