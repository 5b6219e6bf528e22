/** The mount that a target was on when it was last captured, as it stands in its timeline. */
import { isOnZfs, type MountOf, mountOf } from '../backends/mounts-below.ts'
import { isWithin, type Raw, rawFromBytes } from '../model/raw-path.ts'
import type { Context } from './context.ts'

const META = 'target.mount'

type Place = Pick<Context, 'db' | 'targetPath'>

interface Noted extends MountOf {
  /** Of the target: of one that was moved since, nothing is known. */
  path: Raw
}

export function writeMount({ db, targetPath }: Place, mount: MountOf): void {
  const text = JSON.stringify({ path: rawFromBytes(targetPath), ...mount } satisfies Noted)
  if (db.meta(META) !== text) db.setMeta(META, text)
}

export function notedMount({ db, targetPath }: Place): MountOf | undefined {
  const noted = JSON.parse(db.meta(META) ?? 'null') as Noted | null
  const path = rawFromBytes(targetPath)
  return noted?.path === path && isWithin(path, noted.point) ? noted : undefined
}

/** Whether a ZFS dataset of another name is mounted there by now. One that was renamed is taken for another. */
export function isOnDatasetOfAnotherName(place: Place): boolean {
  const [noted, now] = [notedMount(place), mountOf(place.targetPath)]
  const areBoth = noted !== undefined && now !== undefined && isOnZfs(noted) && isOnZfs(now)
  return areBoth && noted.point === now.point && noted.source !== now.source
}
