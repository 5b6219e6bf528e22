/**
 * Which names things have had since some moment, as they were renamed one after the other by whomever. A directory takes along
 * what is in it at that time; what comes later to where it was, or into it, has no part in that.
 */
import type { Raw } from '../model/raw-path.ts'

export interface Renaming {
  op: string
  /** Undefined: outside of what is followed. */
  path: Raw | undefined
  to: Raw | undefined
  directory: boolean
  /** It is a file that they have emptied before. */
  emptied?: boolean
  at: number
  /** Who did it. */
  by: string
}

/** A name that something had until it was renamed. */
interface Name {
  name: Raw
  /** Counts the renamings; and when that was. */
  until: number
  at: number
  by: string
}

/** Where the oldest of its names leads to: what was there in the beginning, something that came later, or from outside. */
type Start = 'there' | 'new' | 'outside'

interface Past {
  /** The newest first. */
  names: Name[]
  start: Start
  /** Who brought it in, if it came from outside, and when. */
  by: string
  at: number
  /** Who has emptied it before renaming it. */
  emptiedBy?: string | undefined
}

/** What is at a path, if something was renamed to or from it; else only a way to others. */
interface Place {
  past?: Past & { since: number }
  below: Map<Raw, Place>
}

const nothingKnown: Past = { names: [], start: 'there', by: '', at: 0 }

export class NamesOverTime {
  private readonly root: Place = { below: new Map() }
  /** By the names that things had in the beginning: who has moved them, and when last. */
  private readonly movers = new Map<Raw, Map<string, number>>()
  private present: Map<Raw, Raw> | undefined
  private now = 0
  private at = 0

  /** In their order. Returns what takes it back, as long as nothing came after it. */
  note({ op, path, to, directory, emptied, at, by }: Renaming): () => void {
    this.now++
    this.at = at
    this.present = undefined
    if (op === 'exchange') return this.exchange(path, to, by)
    if (op === 'rename' && path !== to) return this.move(path, to, by, emptied)
    // Of a directory that goes, all that was in it went by its own name; and programs only try.
    if (op === 'delete' && path !== undefined && !directory && this.find(path)?.past) this.put(path, this.vacated(by))
    return () => {}
  }

  /** All names that it had before, the newest first, and who took it from each. */
  namesOf(path: Raw): readonly Name[] {
    return this.pastOf(path).names
  }

  /** Its name in the beginning; undefined: it came later. */
  firstOf(path: Raw): Raw | undefined {
    const { names, start } = this.pastOf(path)
    return start === 'there' ? (names.at(-1)?.name ?? path) : undefined
  }

  /** Who brought what it is in from outside, and when; nobody knows what was in that. */
  broughtBy(path: Raw): { by: string; at: number } | undefined {
    const { start, by, at } = this.pastOf(path)
    return start === 'outside' ? { by, at } : undefined
  }

  /** Who had emptied the file that is at `path` before renaming it: all that was in it is theirs. */
  emptiedBy(path: Raw): string | undefined {
    return this.find(path)?.past?.emptiedBy
  }

  /** Whether what was at `path` in the beginning is elsewhere, and `by` has moved it at that time or later. */
  hasMoved(by: string, path: Raw, since = 0): boolean {
    if (this.movers.size === 0 || this.firstOf(path) === path) return false
    for (const at of withAncestors(path)) if ((this.movers.get(at)?.get(by) ?? -1) >= since) return true
    return false
  }

  /** Where what was at `path` in the beginning is to be found after all of them; undefined: it has left. */
  nowOf(path: Raw): Raw | undefined {
    this.present ??= this.presentNames()
    for (const at of withAncestors(path)) {
      const now = this.present.get(at)
      if (now !== undefined) return now + path.slice(at.length)
      if (this.movers.has(at)) return undefined
    }
    return path
  }

  private presentNames(): Map<Raw, Raw> {
    const present = new Map<Raw, Raw>()
    const look = (place: Place, path: Raw): void => {
      if (place.past?.start === 'there') present.set(place.past.names.at(-1)!.name, path)
      for (const [name, below] of place.below) look(below, path === '' ? name : `${path}/${name}`)
    }
    look(this.root, '')
    return present
  }

  private move(from: Raw | undefined, to: Raw | undefined, by: string, emptied?: boolean): () => void {
    const before = [from, to].map(path => (path === undefined ? undefined : this.find(path)))
    const moved = from === undefined ? this.fromOutside(by) : this.taken(from, by)
    if (emptied) moved.past!.emptiedBy = by
    if (from !== undefined) this.put(from, this.vacated(by))
    if (to !== undefined) this.put(to, moved)
    return () => this.putBack([from, to], before)
  }

  private exchange(path: Raw | undefined, to: Raw | undefined, by: string): () => void {
    const before = [path, to].map(each => (each === undefined ? undefined : this.find(each)))
    const [first, second] = [path, to].map(each =>
      each === undefined ? this.fromOutside(by) : this.taken(each, by),
    ) as [Place, Place]
    if (path !== undefined) this.put(path, second)
    if (to !== undefined) this.put(to, first)
    return () => this.putBack([path, to], before)
  }

  private putBack(paths: (Raw | undefined)[], places: (Place | undefined)[]): void {
    paths.forEach((path, i) => {
      if (path !== undefined) this.put(path, places[i] ?? { below: new Map() })
    })
  }

  /** What is at `path`, with another name to come. */
  private taken(path: Raw, by: string): Place {
    const past = this.pastOf(path)
    const first = this.firstOf(path)
    if (first !== undefined) this.movers.set(first, (this.movers.get(first) ?? new Map()).set(by, this.at))
    // The oldest says where it is from.
    const earlier = past.names.filter((each, i, { length }) => i === length - 1 || each.name !== path || each.by !== by)
    return {
      past: { ...past, names: [{ name: path, until: this.now, at: this.at, by }, ...earlier], since: this.now },
      below: this.find(path)?.below ?? new Map(),
    }
  }

  private vacated(by: string): Place {
    return { past: { names: [], start: 'new', by, at: this.at, since: this.now }, below: new Map() }
  }

  private fromOutside(by: string): Place {
    return { past: { names: [], start: 'outside', by, at: this.at, since: this.now }, below: new Map() }
  }

  /** Of whatever is known above it: the deepest says where it is from, and those above it where that was taken since. */
  private pastOf(path: Raw): Past {
    let place: Place | undefined = this.root
    let found: Past | undefined
    const known: { at: number; past: NonNullable<Place['past']> }[] = []
    for (let at = 0; at <= path.length && place; ) {
      const end: number = nextEnd(path, at)
      place = place.below.get(path.slice(at, end))
      if (place?.past) known.push({ at: end, past: place.past })
      at = end + 1
    }
    if (known.length === 0) return nothingKnown
    let since = -1
    let names: Name[] = []
    for (const { at, past } of known.reverse()) {
      found ??= past
      const rest = path.slice(at)
      const later = past.names.filter(({ until }) => until > since)
      names = [...(rest === '' ? later : later.map(each => ({ ...each, name: each.name + rest }))), ...names]
      since = Math.max(since, past.since)
    }
    return { ...found!, names }
  }

  private find(path: Raw): Place | undefined {
    let place: Place | undefined = this.root
    for (const name of path.split('/')) place = place?.below.get(name)
    return place
  }

  private put(path: Raw, place: Place): void {
    const names = path.split('/')
    const last = names.pop()!
    let at = this.root
    for (const name of names) {
      const next = at.below.get(name) ?? { below: new Map() }
      at.below.set(name, next)
      at = next
    }
    at.below.set(last, place)
  }
}

function nextEnd(path: Raw, from: number): number {
  const end = path.indexOf('/', from)
  return end < 0 ? path.length : end
}

function* withAncestors(path: Raw): Generator<Raw> {
  for (let end = path.length; end > 0; end = path.lastIndexOf('/', end - 1)) yield path.slice(0, end)
}
