/** The events of a path under all the names that it had: before it was renamed, and beside other names of the same file. */
import { isWithin, type Raw } from '../model/raw-path.ts'
import type { FileEvent } from '../model/trace.ts'
import type { EventRows } from '../timeline/event-rows.ts'

/** A chain of names that never ends is one of somebody who renames in circles. */
const MAX_NAMES = 64
const contentOps = new Set(['write', 'truncate', 'attributes', 'inherited', 'changed'])

export interface NamedEvent {
  event: FileEvent
  /** What the path was called then. */
  name: Raw
}

interface Span {
  name: Raw
  /** Events between these two ids, both excluded. */
  above: number
  below: number
  /** Only what changes the file, not what becomes of the name. */
  contentOnly: boolean
}

/**
 * Newest first. `happened`: whether a rename or a link counts; one that failed gave no name to anything. `others`: what else
 * the same file is called, by no event that is known.
 */
export function eventsOf(
  rows: EventRows,
  path: Raw,
  limit: number,
  happened: (event: FileEvent) => boolean,
  others: readonly Raw[] = [],
): NamedEvent[] {
  const found = new Map<number, NamedEvent>()
  const always = { above: 0, below: Number.MAX_SAFE_INTEGER }
  const queue: Span[] = [
    { name: path, ...always, contentOnly: false },
    ...others.map(name => ({ name, ...always, contentOnly: true })),
  ]
  for (let i = 0; i < queue.length && i < MAX_NAMES; i++) {
    const span = queue[i]!
    const events = rows.ofPath(span.name, limit, span)
    const own = span.contentOnly ? untilGone(events, span.name).filter(({ op }) => contentOps.has(op)) : events
    for (const event of own) {
      // What happened to a directory above it is found under each name; the one that it was renamed from is right.
      const known = found.get(event.id)
      if (!known || !isDirect(known)) found.set(event.id, { event, name: span.name })
      if (!span.contentOnly) queue.push(...otherNames(event, span).filter(() => happened(event)))
    }
  }
  return [...found.values()].sort((a, b) => b.event.id - a.event.id).slice(0, limit)
}

const isDirect = ({ event, name }: NamedEvent): boolean => event.path === name || event.to === name

/** What else the same file was called, by this event. */
function otherNames({ id, op, path, to }: FileEvent, { name, above, below }: Span): Span[] {
  if (path === undefined || to === undefined) return []
  const before = (earlier: Raw): Span => ({ name: earlier, above, below: id, contentOnly: false })
  const beside = (other: Raw): Span => ({ name: other, above: id, below, contentOnly: true })
  if (op === 'link') return name === to ? [before(path), beside(path)] : name === path ? [beside(to)] : []
  if ((op === 'rename' || op === 'exchange') && isWithin(name, to)) return [before(path + name.slice(to.length))]
  if (op === 'exchange' && isWithin(name, path)) return [before(to + name.slice(path.length))]
  return []
}

/** `events`: newest first. Those before the name was given to something else. */
function untilGone(events: FileEvent[], name: Raw): FileEvent[] {
  const oldest = events.findLast(
    ({ op, path, to }) => (op === 'delete' && path === name) || (op === 'rename' && (path === name || to === name)),
  )
  return oldest ? events.filter(({ id }) => id < oldest.id) : events
}
