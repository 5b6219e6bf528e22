/** Which filesystem keeps the snapshots itself, if any does: the order in which they are asked, and what each said. */
import { btrfs } from './btrfs.ts'
import type { NativeBackend, Probe, Where } from './native-backend.ts'
import { zfs } from './zfs.ts'

/** In the order of `auto`. */
export const nativeBackends: readonly NativeBackend[] = [zfs, btrfs]

export const nativeBackend = (name: string): NativeBackend | undefined =>
  nativeBackends.find(backend => backend.name === name)

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
