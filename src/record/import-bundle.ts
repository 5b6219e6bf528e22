/** `bundle import`: the states before and after a recorded command as two snapshots of a timeline. */
import type { MakeStates, PartialState } from '../engine/import-states.ts'
import type { Savepoint } from '../engine/savepoint.ts'
import { SavepointError } from '../errors/errors.ts'
import type { Entry, Id } from '../model/entry.ts'
import { parentOf, type Raw, rawFromBytes } from '../model/raw-path.ts'
import { quoteCommand } from '../model/shell-quote.ts'
import type { Store } from '../store/store.ts'
import { EMPTY_TREE } from '../store/tree-codec.ts'
import { sameEntry } from '../store/tree-diff.ts'
import { entryAt } from '../store/tree-lookup.ts'
import type { Bundle, BundleFile } from './bundle.ts'
import { BundleContents } from './bundle-contents.ts'
import { keepXattrs, toEntry } from './entries.ts'
import { isBelow, relativeTo } from './path-trie.ts'
import type { Side } from './restore-trees.ts'
import type { BundleImportResult } from './results.ts'
import { refuseProblems } from './sound-states.ts'

const MAX_LABEL = 60

export async function importBundle(
  bundle: Bundle,
  savepoint: Savepoint,
  options: { env: NodeJS.ProcessEnv; withGit: boolean },
): Promise<BundleImportResult> {
  refuseProblems(bundle.files)
  const missing: Raw[] = []
  let paths = 0
  const make: MakeStates = async ({ store, writer, home, target, live }) => {
    const directory = rawFromBytes(target)
    // In the order of the paths: a directory comes before what is in it.
    const files = bundle.files.filter(({ raw }) => isBelow(raw, directory)).sort((a, b) => (a.raw < b.raw ? -1 : 1))
    if (files.length === 0)
      throw new SavepointError('usage', 'Cannot import the bundle: nothing in it lies in the target', {
        hint: `It was recorded in ${bundle.manifest.start_cwd}: name that with -t`,
      })
    paths = files.length
    const contents = new BundleContents({ bundle, home, store, writer, ...options })
    try {
      const states: PartialState[] = []
      for (const side of ['before', 'after'] as const)
        states.push({
          label: `${side} ${quoteCommand(bundle.manifest.command)}`.slice(0, MAX_LABEL),
          edits: await editsOf(files, side, directory, { store, live, contents, missing }),
        })
      return states
    } finally {
      contents.close()
    }
  }
  const [before, after] = await savepoint.importStates(bundle.directory, make)
  return { before: before!, after: after!, paths, missing: [...new Set(missing)] }
}

interface Into {
  store: Store
  live: Id
  contents: BundleContents
  missing: Raw[]
}

async function editsOf(
  files: readonly BundleFile[],
  side: Side,
  directory: Raw,
  into: Into,
): Promise<PartialState['edits']> {
  const edits: PartialState['edits'] = new Map()
  for (const file of files) {
    const path = relativeTo(directory, file.raw)
    // Below what is no directory in this state there is nothing.
    const above = nearestEdit(edits, path)
    if (above && above.entry?.kind !== 'dir') continue
    const edit = await editOf(file, side, path, into)
    if (edit !== 'unknown') edits.set(path, edit)
  }
  return edits
}

function nearestEdit(edits: PartialState['edits'], path: Raw): { entry: Entry | undefined } | undefined {
  for (let above = parentOf(path); above !== ''; above = parentOf(above))
    if (edits.has(above)) return { entry: edits.get(above) }
  return undefined
}

async function editOf(
  file: BundleFile,
  side: Side,
  path: Raw,
  { store, live, contents, missing }: Into,
): Promise<Entry | undefined | 'unknown'> {
  const state = file[side]
  if (!state.exists) return undefined
  const entry = toEntry(file, state)
  if (!entry) return 'unknown'
  const there = entryAt(store, live, path)
  if (there?.kind === entry.kind) keepXattrs(entry, there, state, file[side === 'before' ? 'after' : 'before'])
  if (entry.kind === 'dir') return { ...entry, content: there?.kind === 'dir' ? there.content : EMPTY_TREE }
  if (entry.kind !== 'file') return orLive(entry, there)
  // Nobody needed its content.
  if (state.sha256 === undefined) return 'unknown'
  const content = await contents.store(file, side)
  if (typeof content === 'string') return orLive({ ...entry, content }, there)
  missing.push(file.raw)
  return 'unknown'
}

/** A bundle does not know which names are of one file: what is the same live is what is live. */
const orLive = (entry: Entry, live: Entry | undefined): Entry =>
  live && sameEntry({ ...entry, linkGroup: live.linkGroup }, live) ? live : entry
