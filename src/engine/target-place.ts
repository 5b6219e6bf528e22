/**
 * Where the target of a run is while it goes on. It may be moved, by the run or by others: what the run then does in it is
 * told under its new path, and is no less a change of the target. Where another directory is put in its place, that is the target from then on,
 * and what the run does in the old one is told as of that.
 */
import { lstatSync } from 'node:fs'
import { SavepointError } from '../errors/errors.ts'
import { isWithin, type Raw, rawFromBytes, rawToBytes } from '../model/raw-path.ts'
import { type FollowedDir, followDir } from '../targets/dir/dir-target.ts'
import type { PathOp } from '../tracers/frames.ts'
import type { InTree, PathEvent, TraceEvent, UnmovedEvent } from '../tracers/trace-event.ts'

/** So many directories are looked for that were the target one after the other; and are told apart. */
const MAX_FOLLOWED = 5
const MAX_TREES = 50
/** How many of the last moves can be taken back. */
const MAX_MOVES = 100

const displacing: ReadonlySet<PathOp> = new Set(['rename', 'exchange', 'delete'])

/** Whether the target goes with what is moved: an exchange moves both. */
export function movesTarget({ op, path, to }: PathEvent, target: Raw): boolean {
  const moved = op === 'exchange' ? [path, to] : op === 'rename' ? [path] : []
  return moved.some(each => each !== undefined && isWithin(target, each))
}

/** Who took the target from its place; undefined when nobody can tell. */
export type Displacer = 'run' | 'others' | undefined

/** One of the directories, and its number among them. */
export interface Place {
  path: Buffer
  tree: number
}

interface Tree {
  /** By what the run tells. Undefined: it has removed it. */
  at: Raw | undefined
  goneAt: number
  came: number | undefined
  /** The run has moved it from the target's path. */
  hasLeft: boolean
  /** Nothing tells who has put it there. */
  isOthers: boolean
}

/** What a move that was told did to them. */
interface Move {
  path: Raw
  to: Raw | undefined
  moved: { tree: Tree; from: Raw }[]
  made: Tree | undefined
  /** It replaces an empty directory at the target's path. */
  isOver: boolean
}

interface Located {
  raw: Raw | undefined
  /** Undefined: it is in none of them. */
  tree: number | undefined
}

export class TargetPlace {
  private readonly path: Buffer
  private readonly target: Raw
  private readonly first: FollowedDir
  private readonly later = new Map<number, FollowedDir>()
  /** The directory that was the target in the beginning, and those that took the place of it. */
  private readonly trees: Tree[] = []
  /** The one that was removed at the target's path: what comes there next is as good as that. */
  private removed: Tree | undefined
  private readonly moves: Move[] = []
  /** Undefined: not looked since `settle`. */
  private seen: { elsewhere: Raw | undefined } | undefined
  private wasDisplaced = false

  constructor(path: Buffer) {
    this.path = path
    this.target = rawFromBytes(path)
    this.add(undefined)
    this.first = followDir(path)
  }

  /** Where the first one has been moved to; undefined when it is gone, or where it was. */
  movedTo(): Buffer | undefined {
    return this.elsewhereOf(this.first)
  }

  /** A process of the run moved, removed or replaced it, or what it lies in. */
  get isDisplacedByRun(): boolean {
    return this.wasDisplaced || this.moves.some(({ isOver }) => isOver)
  }

  /** When the run has removed the first one. */
  get goneAt(): number {
    return this.trees[0]!.goneAt
  }

  /** Whether the run has moved the first one away, or had put another one in its place. */
  get isLeft(): boolean {
    return this.trees.some(({ hasLeft, isOthers }, tree) => hasLeft || (tree > 0 && !isOthers))
  }

  /** When each came that took the place of another one. */
  get cameAt(): readonly (number | undefined)[] {
    return this.trees.map(({ came }) => came)
  }

  /** What has to be protected: first what is the target, then what was it before. */
  places(): Place[] {
    const formers = this.formers()
    if (formers.length > 0 && !this.isDirectoryThere()) return formers
    return [{ path: this.path, tree: this.present() }, ...formers]
  }

  /** Where the first one has been moved to, and those that took the place of it and were moved away themselves. */
  formers(): Place[] {
    const movedTo = this.movedTo()
    const first = movedTo ? [{ path: movedTo, tree: 0 }] : []
    const later = this.trees.flatMap(({ at }, tree) => {
      if (tree === 0 || tree >= MAX_FOLLOWED || at === undefined || at === this.target) return []
      const directory = this.later.get(tree) ?? followIfOpen(rawToBytes(at))
      const path = directory && this.elsewhereOf(directory)
      if (path) this.later.set(tree, directory)
      else {
        directory?.close()
        this.later.delete(tree)
      }
      return path ? [{ path, tree }] : []
    })
    return [...first, ...later]
  }

  /** The event as it would be were the target still where it was; two, when it is about two of the directories. */
  asBefore(event: TraceEvent): TraceEvent[] {
    if (event.type === 'kept') return [{ ...event, tree: this.treeOf(this.locate(event.where).tree) }]
    if (event.type === 'unmoved') return [this.unmove(event)]
    if (event.type !== 'path') return [event]
    if (this.removed && this.isThereAfterAll(event)) this.arrive(event.at, false)
    const before = this.located(event)
    this.follow(event)
    // What has come by it is the target.
    return before.map(each => (each.tree ? each : { ...each, tree: this.treeIfIn(each) }))
  }

  /** A move that was told has failed. */
  private unmove(event: UnmovedEvent): UnmovedEvent {
    const { path, to } = event
    const at = this.moves.findLastIndex(move => move.path === path && move.to === to)
    const [move] = at < 0 ? [] : this.moves.splice(at, 1)
    for (const { tree, from } of move?.moved ?? []) this.put(tree, from)
    if (move?.made && this.trees.at(-1) === move.made) this.trees.pop()
    return { ...event, present: Math.max(0, this.told) }
  }

  /** What was told until now is through: the next time, it may be somewhere else. */
  settle(): void {
    this.seen = undefined
  }

  close(): void {
    for (const each of [this.first, ...this.later.values()]) each.close()
  }

  private isDirectoryThere(): boolean {
    return lstatSync(this.path, { throwIfNoEntry: false })?.isDirectory() === true
  }

  private elsewhereOf(directory: FollowedDir): Buffer | undefined {
    const place = directory.place()
    return place?.equals(this.path) ? undefined : place
  }

  private add(came: number | undefined, isOthers = false): number {
    return this.trees.push({ at: this.target, goneAt: Infinity, came, hasLeft: false, isOthers }) - 1
  }

  private put(tree: Tree, at: Raw): void {
    Object.assign(tree, { at, hasLeft: at !== this.target })
  }

  /** The number of the one at the target's path, by what is told. */
  private get told(): number {
    return this.trees.findIndex(({ at }) => at === this.target)
  }

  /** The same by what is there: somebody else may have put another one there. */
  private present(): number {
    const known = this.trees.findLastIndex(({ at }, tree) => at === this.target && (tree > 0 || !this.movedTo()))
    if (known >= 0) return known
    if (this.removed) return this.trees.indexOf(this.removed)
    return this.isDirectoryThere() ? this.add(Date.now(), true) : this.trees.length - 1
  }

  private treeOf(index: number | undefined): InTree | undefined {
    if (index === undefined || (this.trees.length === 1 && this.trees[0]!.came === undefined)) return undefined
    return { index, isPresent: index === this.told, came: this.trees[index]!.came }
  }

  private treeIfIn({ path, to }: PathEvent): InTree | undefined {
    const isInside = [path, to].some(each => each !== undefined && isWithin(each, this.target))
    return isInside && this.told >= 0 ? this.treeOf(this.told) : undefined
  }

  private located(event: PathEvent): PathEvent[] {
    const { op, path, to } = event
    if (movesTarget(event, this.target) || (op === 'delete' && path !== undefined && isWithin(this.target, path))) {
      this.wasDisplaced ||= !event.absent
      return [{ ...event, tree: this.treeIfIn(event) }]
    }
    const [from, there] = [path, to].map(each => this.locate(each)) as [Located, Located]
    const isOfTwo = from.tree !== undefined && there.tree !== undefined && from.tree !== there.tree
    if (!isOfTwo) return [{ ...event, path: from.raw, to: there.raw, tree: this.treeOf(from.tree ?? there.tree) }]
    return [
      { ...event, path: from.raw, to: undefined, tree: this.treeOf(from.tree) },
      { ...event, path: undefined, to: there.raw, tree: this.treeOf(there.tree) },
    ]
  }

  private locate(path: Raw | undefined): Located {
    if (path === undefined) return { raw: path, tree: undefined }
    if (isWithin(path, this.target)) return { raw: path, tree: this.told < 0 ? undefined : this.told }
    for (const [i, tree] of this.trees.entries()) {
      const place = i === 0 ? (this.toldElsewhere() ?? this.elsewhere()) : tree.at
      if (place === undefined || place === this.target || !isWithin(path, place)) continue
      return { raw: this.target + path.slice(place.length), tree: i }
    }
    return { raw: path, tree: undefined }
  }

  private toldElsewhere(): Raw | undefined {
    const { at } = this.trees[0]!
    return at === this.target ? undefined : at
  }

  /** One look for all events that come at once: most runs change many files elsewhere. */
  private elsewhere(): Raw | undefined {
    if (!this.seen) {
      const place = this.movedTo()
      this.seen = { elsewhere: place && rawFromBytes(place) }
    }
    return this.seen.elsewhere
  }

  private follow({ op, path, to, at, existed, absent }: PathEvent): void {
    // It fails.
    if (absent && displacing.has(op)) return
    const move: Move = { path: path ?? '', to, moved: [], made: undefined, isOver: false }
    for (const tree of this.trees) {
      if (path === undefined || tree.at === undefined || !displacing.has(op)) continue
      const [from, there] = op === 'exchange' && to !== undefined && isWithin(tree.at, to) ? [to, path] : [path, to]
      if (op === 'delete' && path === tree.at) this.remove(tree, at)
      else if (op !== 'delete' && there !== undefined && isWithin(tree.at, from)) {
        move.moved.push({ tree, from: tree.at })
        this.put(tree, there + tree.at.slice(from.length))
      }
    }
    const isHere = (each: Raw | undefined) => each !== undefined && isWithin(this.target, each)
    const isMade = op === 'create' && path === this.target && !existed
    const isThere = isMade || (op === 'rename' && isHere(to)) || (op === 'exchange' && [path, to].some(isHere))
    if (isThere && this.told < 0) move.made = this.arrive(at, !isMade)
    else move.isOver = op === 'rename' && to === this.target && path !== to
    if (move.moved.length > 0 || move.made || move.isOver) this.moves.push(move)
    if (this.moves.length > MAX_MOVES) this.wasDisplaced ||= this.moves.shift()!.isOver
  }

  /** To remove it has failed: something is in it, or it is moved. */
  private isThereAfterAll(event: PathEvent): boolean {
    const isIn = (each: Raw | undefined) => each !== undefined && each !== this.target && isWithin(each, this.target)
    return movesTarget(event, this.target) || (isIn(event.path) && !event.absent)
  }

  private remove(tree: Tree, at: number): void {
    this.removed = tree.at === this.target ? tree : undefined
    Object.assign(tree, { at: undefined, goneAt: at })
  }

  /** `isWhole`: with all that is in it. */
  private arrive(at: number, isWhole: boolean): Tree | undefined {
    const again = this.removed ?? (this.trees.length < MAX_TREES ? undefined : this.trees.at(-1)!)
    this.removed = undefined
    if (!again) return this.trees[this.add(at)]
    Object.assign(again, { at: this.target, goneAt: Infinity, came: isWhole ? at : again.came })
    return undefined
  }
}

/** Undefined where we may not. */
function followIfOpen(path: Buffer): FollowedDir | undefined {
  try {
    return followDir(path)
  } catch (error) {
    if (!(error instanceof SavepointError)) throw error
    return undefined
  }
}
