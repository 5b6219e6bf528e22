/**
 * Whoever follows a hint to what a filesystem keeps stands in a state of the past: to protect that would begin a history of
 * its own there, in a directory that is removed one day.
 */
import { SavepointError } from '../errors/errors.ts'
import { rawFromBytes, showPath } from '../model/raw-path.ts'
import { SNAPSHOTS_BESIDE } from '../targets/dir/whose-store.ts'
import { allTargets } from './target-registry.ts'

/** As `whereFor` and the drivers name it: the id of the timeline, whose directory it is, and the snapshot. */
const places = [`\\${SNAPSHOTS_BESIDE}(?:-\\d+)?/`, 'native/', '\\.zfs/snapshot/savepoint-'].join('|')
const kept = new RegExp(`/(?:${places})([0-9a-f]{16})-[0-9a-f]+[/-](snap_[a-z2-7]{8})(?:/|$)`)

/** Throws when the directory lies in a snapshot that a filesystem keeps, of whatever home. */
export function refuseInKept(home: string, path: Buffer): void {
  const found = kept.exec(rawFromBytes(path))
  if (!found) return
  const [, timeline, snapshot] = found
  const target = allTargets(home).find(({ id }) => id === timeline)
  const whose = target && showPath(rawFromBytes(target.path))
  const ways = `\`savepoint revert PATH --from ${snapshot}\` brings a path back, and \`savepoint rollback ${snapshot} --to PLACE\` writes all of it to where you can work in it`
  throw new SavepointError(
    'target.refused',
    `Cannot use ${showPath(rawFromBytes(path))}: this is snapshot ${snapshot} of ${whose ?? 'another directory'}, kept by the filesystem`,
    { hint: `What you need can be copied from here${whose === undefined ? '' : `. In ${whose}, ${ways}`}` },
  )
}
