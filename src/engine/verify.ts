/** `verify`: reads every block, checks every object against its id, and every snapshot for completeness. */
import { join } from 'node:path'
import { call, type Deep, runDeep } from '../model/deep-walk.ts'
import type { Id } from '../model/entry.ts'
import { plural } from '../model/format.ts'
import { joinRaw, type Raw, showPath } from '../model/raw-path.ts'
import { type Snapshot, UNREAD_ROOT } from '../model/snapshot.ts'
import { indexAside, removeIndexAside } from '../store/damaged-index.ts'
import { renewKnownDamage } from '../store/known-damage.ts'
import type { Location } from '../store/object-index.ts'
import { blockObjects, OBJECT } from '../store/pack-format.ts'
import { PackReader } from '../store/pack-reader.ts'
import { rebuildIndex } from '../store/rebuild-index.ts'
import { decodeRecipe } from '../store/recipe.ts'
import { type PackScan, scanPacks } from '../store/scan-packs.ts'
import { decodeTree, EMPTY_TREE } from '../store/tree-codec.ts'
import { removeStatCache } from '../targets/dir/stat-cache-file.ts'
import { damageHint } from '../timeline/explain-open.ts'
import { type OpenTimeline, withEverythingLocked } from './all-timelines.ts'
import { CHECKING, type Context, refuseInsideRun, requireWritable } from './context.ts'
import { findLostRoots } from './lost-roots.ts'
import { newOperation } from './new-operation.ts'
import { bringBackLost, lossProblem } from './open-timeline.ts'
import { leaveBeyond } from './read-native.ts'
import { strayResults } from './stray-states.ts'
import { keptWayBack, storeLostFromFilesystem } from './verify-kept.ts'
import type { StrayResult, VerifyProblem, VerifyResult } from './verify-results.ts'

const LISTED_PATHS = 20

export async function verify(ctx: Context, options: { repair?: boolean }): Promise<VerifyResult> {
  const result = await look(ctx, options)
  await leaveBeyond(ctx)
  return result
}

async function look(ctx: Context, options: { repair?: boolean }): Promise<VerifyResult> {
  if (options.repair) {
    refuseInsideRun(ctx, 'repair')
    requireWritable(ctx)
  }
  const check = async (timelines: OpenTimeline[], mended: string[] = []): Promise<VerifyResult> => {
    const { storeLostFromArchives, verifyArchive } = await import('./verify-archive.ts')
    const damage = ctx.store.index.damage()
    const scan = scanPacks(ctx.store, damage === undefined ? ctx.store.index.packs() : [], progress =>
      ctx.progress?.({ phase: 'verifying', files: progress.objects, bytes: progress.bytes }),
    )
    const repaired = options.repair ? [...repair(ctx, timelines, scan), ...mended] : []
    const problems: VerifyProblem[] = []
    const strays: StrayResult[] = []
    const found = new FoundObjects(ctx, scan, damage === undefined)
    if (options.repair && mended.length === 0) {
      const isLost = ({ root }: Snapshot) => root !== UNREAD_ROOT && lostPaths(found, root).length > 0
      const stored = await storeLostFromArchives(ctx, timelines, isLost)
      if (stored.length > 0) {
        found.close()
        return check(timelines, stored)
      }
    }
    if (options.repair) repaired.push(...findLostRoots(ctx, timelines, root => lostPaths(found, root).length === 0))
    let [snapshots, here, deleted, unread] = [0, 0, 0, 0]
    let [hasDamagedTimeline, canBeMended] = [false, false]
    for (const timeline of timelines) {
      const damage = timeline.db.damage()
      if (damage !== undefined) {
        hasDamagedTimeline = true
        problems.push(timelineProblem(timeline, damage))
        continue
      }
      const loss = lossProblem(timeline)
      if (loss) {
        canBeMended = true
        problems.push({ ...loss, paths: [] })
      } else strays.push(...strayResults(ctx, timeline, mended.length === 0))
      for (const snapshot of timeline.db.snapshots(true)) {
        snapshots++
        if (snapshot.deletedAt !== undefined) deleted++
        else if (timeline.db === ctx.db) here++
        // What its filesystem keeps is not in the store yet.
        if (snapshot.root === UNREAD_ROOT) {
          unread++
          continue
        }
        const lost = lostPaths(found, snapshot.root)
        const whole = { isWhole: lost.length === 0, repair: options.repair }
        const archive = await verifyArchive(ctx, timeline, snapshot, whole)
        const wayBack = lost.length > 0 && !archive.isWhole ? keptWayBack(ctx, timeline, snapshot) : undefined
        if (lost.length > 0) problems.push(lossOf(snapshot.id, lost, archive.isWhole ? ARCHIVE_IS_WHOLE : wayBack))
        if (archive.problem) problems.push(archive.problem)
        if (archive.problem ? whole.isWhole : archive.isWhole && lost.length > 0) canBeMended = true
        if (wayBack !== undefined) canBeMended = true
        if (archive.repaired !== undefined) repaired.push(archive.repaired)
      }
    }
    found.close()
    const rows = damage === undefined ? badRows(ctx, scan) : undefined
    // Whoever decides later what may go without reading everything must know. An index that was just made anew has none.
    if (rows) renewKnownDamage(ctx.store.index, [...rows.dangling, ...rows.wrong])
    const ofIndex = rows ? indexProblems(rows, found.unlisted.size) : [indexDamaged(damage!)]
    problems.unshift(...ofIndex)
    // Damaged bytes that nothing needs (after a repair, or when everything was stored again) are no problem.
    if (problems.length > 0) problems.unshift(...scan.problems.map(what => ({ what, snapshots: [], paths: [] })))
    else if (scan.problems.length > 0)
      ctx.warn(`${plural('damaged place', scan.problems.length)} in the packs: nothing that is needed lies there`)
    if (options.repair) settleAside(ctx, problems.length === 0)
    if (repaired.length > 0 && ctx.scratch === undefined)
      ctx.db.addOperation({ ...newOperation(ctx, 'repair', `repair: ${repaired.join('; ')}`), state: 'fixed' })
    const isRepairable = (ofIndex.length > 0 || hasDamagedTimeline || canBeMended) && !options.repair
    const counts = { objects: scan.objects.size, bytes: scan.bytes, snapshots, here, deleted, unread }
    return { ...counts, problems, strays, repaired, isRepairable }
  }
  const locked = (mended?: string[]) =>
    withEverythingLocked(
      ctx,
      options.repair ? 'repair' : CHECKING,
      timelines => check(timelines, mended),
      options.repair,
    )
  const result = await locked()
  const stored = options.repair && result.problems.length > 0 ? await storeLostFromFilesystem(ctx) : []
  if (stored.length === 0) return result
  const mended = await locked(stored)
  return { ...mended, repaired: [...result.repaired, ...mended.repaired] }
}

const indexDamaged = (damage: string): VerifyProblem => ({
  what: `the index is damaged (${damage}): \`savepoint verify --repair\` rebuilds it`,
  snapshots: [],
  paths: [],
})

function timelineProblem({ target }: OpenTimeline, damage: string): VerifyProblem {
  const file = join(target.directory, 'timeline.sqlite')
  return { what: `${file} is damaged (${damage}). ${damageHint(file)}`, snapshots: [], paths: [] }
}

/** Ids of rows that point to nothing, or to something else. */
interface BadRows {
  dangling: Id[]
  wrong: Id[]
}

function badRows(ctx: Context, scan: PackScan): BadRows {
  const rows: BadRows = { dangling: [], wrong: [] }
  for (const row of ctx.store.index.rows()) {
    const found = scan.objects.get(row.id)
    const isThere = row.kind === OBJECT.clone || scan.places.has(`${row.pack}:${row.block}`)
    if (!found || !isThere) rows.dangling.push(row.id)
    else if (row.kind !== OBJECT.clone && !isSamePlace(row, found) && !holds(ctx, row)) rows.wrong.push(row.id)
  }
  return rows
}

/** Rows that are missing, and rows that are bad. Objects that nothing needs are gc's business. */
function indexProblems({ dangling, wrong }: BadRows, unlisted: number): VerifyProblem[] {
  const problem = (what: string): VerifyProblem => ({ what, snapshots: [], paths: [] })
  const problems: VerifyProblem[] = []
  if (unlisted > 0)
    problems.push(
      problem(`the index does not find ${unlisted} intact objects: \`savepoint verify --repair\` rebuilds it`),
    )
  if (dangling.length > 0)
    problems.push(problem(`the index has ${dangling.length} rows whose objects are damaged or missing`))
  if (wrong.length > 0)
    problems.push(
      problem(
        `the index has ${wrong.length} rows that point to the wrong bytes: \`savepoint verify --repair\` rebuilds it`,
      ),
    )
  return problems
}

const isSamePlace = (a: Location, b: Location): boolean =>
  a.pack === b.pack && a.block === b.block && a.offset === b.offset && a.length === b.length && a.kind === b.kind

/** Whether a row that names another place than the scan is right all the same: the object is stored twice. */
function holds(ctx: Context, { id, kind, ...location }: Location & { id: Id }): boolean {
  const { bytes, header } = ctx.store.packs.packedBlock(location.pack, location.block)
  let offset = 0
  for (const object of blockObjects(bytes, header)) {
    if (object.id === id && offset === location.offset) return object.length === location.length && object.kind === kind
    offset += object.length
  }
  return false
}

function repair(ctx: Context, timelines: OpenTimeline[], scan: PackScan): string[] {
  const done = rebuildIndex(ctx.store, scan)
  for (const timeline of timelines) {
    removeStatCache(timeline.target.directory)
    done.push(...bringBackLost(timeline))
    timeline.db.plain.renew()
  }
  ctx.store.refresh()
  return done
}

/** The index that could not be opened: of no use once everything is found without it. */
function settleAside(ctx: Context, allGood: boolean): void {
  const aside = indexAside(ctx.store.directory)
  if (aside === undefined) return
  if (allGood) removeIndexAside(ctx.store.directory)
  else ctx.notice(`not everything could be repaired: the damaged index is kept as ${aside}`)
}

/** Reads objects where the scan found them, whatever the index says, and notes those that the index does not find. */
class FoundObjects {
  readonly scan: PackScan
  readonly unlisted = new Set<Id>()
  private readonly ctx: Context
  private readonly reader: PackReader

  private readonly isIndexSound: boolean

  constructor(ctx: Context, scan: PackScan, isIndexSound: boolean) {
    this.isIndexSound = isIndexSound
    const names = new Map([...scan.packs].map(([name, { id }]) => [id, name]))
    this.ctx = ctx
    this.scan = scan
    this.reader = new PackReader(ctx.store.packDirectory, pack => names.get(pack))
  }

  has(id: Id): boolean {
    if (!this.scan.objects.has(id)) return false
    if (this.isIndexSound && !this.ctx.store.has(id)) this.unlisted.add(id)
    return true
  }

  /** undefined when it is not there, or is not what `decode` takes. */
  read<T>(id: Id, decode: (bytes: Buffer) => T): T | undefined {
    if (!this.has(id)) return undefined
    const { pack, block, offset, length } = this.scan.objects.get(id)!
    try {
      return decode(this.reader.block(pack, block).subarray(offset, offset + length))
    } catch {
      return undefined
    }
  }

  isIntact(content: Id): boolean {
    if (!this.has(content)) return false
    if (this.scan.objects.get(content)!.kind !== OBJECT.recipe) return true
    return this.read(content, decodeRecipe)?.every(item => 'hole' in item || this.has(item.chunk)) ?? false
  }

  close(): void {
    this.reader.close()
  }
}

interface Lost {
  path: Raw
  /** A directory whose list is gone, and with it all that was in it. */
  isList: boolean
}

const ARCHIVE_IS_WHOLE = 'its archive is whole, `savepoint verify --repair` stores it again'

function lossOf(snapshot: string, lost: Lost[], other: string | undefined): VerifyProblem {
  const wayBack = other === undefined ? '' : `: ${other}`
  const lists = lost.filter(({ isList }) => isList).length
  if (lost[0]!.path === '') {
    const what = `${snapshot} has lost everything: the list of what was in the target is damaged${wayBack}`
    return { what, snapshots: [snapshot], paths: [] }
  }
  const below = lists === 0 ? '' : ` (${plural('directory', lists)} with everything below)`
  return {
    what: `${snapshot} has lost ${plural('path', lost.length)}${below}${wayBack}`,
    snapshots: [snapshot],
    paths: lost.slice(0, LISTED_PATHS).map(({ path, isList }) => `${showPath(path)}${isList ? '/' : ''}`),
  }
}

/** Paths whose tree or content cannot be produced from intact objects. Unchanged subtrees are looked at once. */
function lostPaths(found: FoundObjects, root: Id): Lost[] {
  const lost: Lost[] = []
  const visit = function* (tree: Id, path: Raw): Deep<void> {
    if (tree === EMPTY_TREE || found.scan.complete.has(tree)) return
    const before = lost.length
    const entries = found.read(tree, decodeTree)
    if (!entries) {
      lost.push({ path, isList: true })
      return
    }
    for (const entry of entries) {
      const here = joinRaw(path, entry.name)
      if (entry.kind === 'dir') yield* call(visit(entry.content, here))
      else if (entry.kind === 'file' && !found.isIntact(entry.content)) lost.push({ path: here, isList: false })
    }
    if (lost.length === before) found.scan.complete.add(tree)
  }
  runDeep(visit(root, ''))
  // The root tree has one entry, the target.
  return lost.map(({ path, isList }) => ({ path: path.replace(/^root(\/|$)/, ''), isList }))
}
