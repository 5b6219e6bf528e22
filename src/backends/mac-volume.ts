/** Which volume of macOS a path is on, by the outputs of `df` and `mount`. Untested on macOS: read from recorded ones. */
import type { Probe } from './native-backend.ts'
import { no } from './place.ts'
import { runProgram } from './run-program.ts'

export interface MacVolume {
  mountpoint: string
  isApfs: boolean
}

/** undefined: this is not macOS, or it does not tell. */
export function macVolumeOf(path: string): MacVolume | undefined {
  if (process.platform !== 'darwin') return undefined
  const mountpoint = mountpointIn(runProgram('df', ['-P', path]).stdout.toString())
  if (mountpoint === undefined) return undefined
  return { mountpoint, isApfs: typeIn(runProgram('mount', []).stdout.toString(), mountpoint) === 'apfs' }
}

/** Why no backend of macOS works for it; undefined: one may. */
export function whyNotApfs(path: string): Probe | undefined {
  const volume = macVolumeOf(path)
  if (!volume) return no('this is not macOS', 'Use auto')
  return volume.isApfs ? undefined : no(`${volume.mountpoint} is not APFS`, 'Move the target to a volume that is')
}

/** "/dev/disk3s5 971350180 612480520 325461104 66% /System/Volumes/Data", below a line of titles. */
function mountpointIn(df: string): string | undefined {
  return df.split('\n')[1]?.match(/%\s+(\/.*)$/)?.[1]
}

/** "/dev/disk3s5 on /System/Volumes/Data (apfs, local, journaled, nobrowse)". */
function typeIn(mount: string, mountpoint: string): string | undefined {
  const line = mount.split('\n').find(each => each.includes(` on ${mountpoint} (`))
  return line?.slice(line.lastIndexOf(' (') + 2).split(/[,)]/)[0]
}
