import type { Change, Entry } from '../model/entry.ts'
import { nameOf, type Raw } from '../model/raw-path.ts'

/**
 * Joins a deleted and an added file (or link) of the same content into one change of kind 'renamed'. Among several
 * candidates one of the same name wins, then the one in the nearest directory. Empty files are never joined: they are
 * all alike. Each change takes part in one rename at most; the result depends on the set of changes, not on their
 * order, and is sorted by path.
 */
export function detectRenames(changes: Change[]): Change[] {
  const groups = new Map<string, Candidate[]>()
  const out: Change[] = []
  for (const change of changes) {
    const key = contentKey(change)
    if (key === undefined) out.push(change)
    else addTo(groups, key, { change, deleted: change.kind === 'deleted' })
  }
  for (const group of groups.values()) {
    const byName = new Map<Raw, Candidate[]>()
    for (const candidate of group) addTo(byName, nameOf(candidate.change.path), candidate)
    const left: Candidate[] = []
    for (const namesakes of byName.values()) for (const one of pairNearest(namesakes, out)) left.push(one)
    for (const { change } of pairNearest(left, out)) out.push(change)
  }
  return out.sort((a, b) => compare(a.path, b.path) || compare(a.kind, b.kind))
}

interface Candidate {
  change: Change
  deleted: boolean
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)

function addTo<K>(groups: Map<K, Candidate[]>, key: K, candidate: Candidate): void {
  const group = groups.get(key)
  if (group) group.push(candidate)
  else groups.set(key, [candidate])
}

/** Equal for changes that may be one rename; undefined for a change that cannot be part of one. */
function contentKey(change: Change): string | undefined {
  const entry: Entry | undefined =
    change.kind === 'deleted' ? change.before : change.kind === 'added' ? change.after : undefined
  if (entry?.kind === 'file' && entry.size > 0 && entry.content !== '') return `file ${entry.content}`
  if (entry?.kind === 'link' && entry.target !== '') return `link ${entry.target}`
  return undefined
}

/** The candidates of one directory that found no partner below it, in order of path. */
interface Directory {
  deleted: Queue
  added: Queue
}

/**
 * Pairs within the deepest directory that holds both partners, then within its parent, and so on. Adds the renames to
 * `out` and returns the candidates without a partner. Sorted order visits every directory in one stretch, so a stack
 * of open directories suffices and no list is copied on its way up.
 */
function pairNearest(candidates: Candidate[], out: Change[]): Candidate[] {
  if (candidates.length < 2 || candidates.every(({ deleted }) => deleted === candidates[0]!.deleted)) return candidates
  candidates.sort((a, b) => compare(a.change.path, b.change.path))
  const open: Directory[] = [newDirectory()]
  let parts: Raw[] = []
  for (const candidate of candidates) {
    const directories = candidate.change.path.split('/').slice(0, -1)
    let shared = 0
    while (shared < parts.length && parts[shared] === directories[shared]) shared++
    while (open.length > shared + 1) closeDirectory(open, out)
    while (open.length < directories.length + 1) open.push(newDirectory())
    parts = directories
    const { deleted, added } = open.at(-1)!
    pushTo(candidate.deleted ? deleted : added, candidate)
  }
  while (open.length > 1) closeDirectory(open, out)
  const root = open[0]!
  pairWithin(root, out)
  return [...drain(root.deleted), ...drain(root.added)]
}

const newDirectory = (): Directory => ({ deleted: {}, added: {} })

function closeDirectory(open: Directory[], out: Change[]): void {
  const directory = open.pop()!
  const parent = open.at(-1)!
  pairWithin(directory, out)
  append(parent.deleted, directory.deleted)
  append(parent.added, directory.added)
}

function pairWithin({ deleted, added }: Directory, out: Change[]): void {
  while (deleted.first && added.first) {
    const from = shift(deleted).change
    const to = shift(added).change
    out.push({ kind: 'renamed', path: to.path, from: from.path, before: from.before, after: to.after })
  }
}

/** A linked list: two of them are joined in one step, however long they are. */
interface Queue {
  first?: Link
  last?: Link
}
interface Link {
  candidate: Candidate
  next?: Link
}

function pushTo(queue: Queue, candidate: Candidate): void {
  const link: Link = { candidate }
  append(queue, { first: link, last: link })
}

function append(queue: Queue, more: Queue): void {
  if (!more.first) return
  if (queue.last) queue.last.next = more.first
  else queue.first = more.first
  queue.last = more.last
}

function shift(queue: Queue): Candidate {
  const { candidate, next } = queue.first!
  queue.first = next
  if (!next) queue.last = undefined
  return candidate
}

function* drain(queue: Queue): Generator<Candidate, void> {
  for (let link = queue.first; link; link = link.next) yield link.candidate
}
