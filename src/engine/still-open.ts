/**
 * What a restore replaces or removes is moved away, not written over. A process of a run that goes on and holds it open for
 * writing, or has it mapped so, writes to the old file from then on, where nobody sees it: who they are, and what they hold.
 */
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { joinRaw, type Raw, rawFromBytes } from '../model/raw-path.ts'
import type { Displaced } from '../targets/dir/restore-apply.ts'
import type { Context } from './context.ts'
import { isWritable } from './process-files.ts'
import { seenOfRuns } from './process-list.ts'
import { processName } from './process-tree.ts'
import type { StillOpen } from './results.ts'

/** How /proc/PID/maps writes what is mapped shared and writable: `start-end rights offset device inode path`. */
const MAPPED = /^\S+ .w.s \S+ \S+ \d+ +(.*)$/
const GONE = ' (deleted)'

/** To be asked while what was displaced still lies in the stage: by that the system names it. */
export function stillOpen(ctx: Context, stage: Raw, displaced: readonly Displaced[]): StillOpen[] {
  if (displaced.length === 0) return []
  // A name that nothing else has: so it is found whatever mounts the process sees.
  const mark = `/${stage}/`
  const places = new Map(displaced.map(({ path, staged }) => [staged, path]))
  const holders = new Map<Raw, StillOpen['processes']>()
  for (const { pid } of seenOfRuns(ctx).map(({ process }) => process)) {
    const names = [...attempt(() => openIn(pid, mark)), ...attempt(() => mappedIn(pid, mark))]
    const paths = new Set(names.flatMap(name => placeOf(name, mark, places) ?? []))
    for (const path of paths) {
      const processes = holders.get(path) ?? []
      holders.set(path, processes)
      processes.push({ pid, name: processName(pid) })
    }
  }
  const found = [...holders].map(([path, processes]) => ({ path, processes }))
  return found.sort((a, b) => (a.path < b.path ? -1 : 1))
}

/** Where it was before. */
function placeOf(name: Raw, mark: Raw, places: ReadonlyMap<Raw, Raw>): Raw | undefined {
  const staged = name.slice(name.lastIndexOf(mark) + 1)
  const [stage, top, ...below] = staged.split('/')
  const path = places.get(joinRaw(stage!, top!))
  return path === undefined ? undefined : [path, ...below].join('/')
}

function openIn(pid: number, mark: Raw): Raw[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap(fd =>
    attempt(() => {
      const link = `/proc/${pid}/fd/${fd}`
      const name = rawFromBytes(readlinkSync(link, 'buffer'))
      if (!name.includes(mark) || !isWritable(pid, fd)) return []
      // Without a name it was removed before.
      return statSync(link).nlink > 0 ? [name] : []
    }),
  )
}

function mappedIn(pid: number, mark: Raw): Raw[] {
  const lines = readFileSync(`/proc/${pid}/maps`, 'latin1').split('\n')
  return lines.flatMap(line => {
    const name = line.includes(mark) && MAPPED.exec(line)?.[1]
    return !name || name.endsWith(GONE) ? [] : [name.replaceAll('\\012', '\n')]
  })
}

/** It may have ended meanwhile, or be somebody else's. */
function attempt(look: () => Raw[]): Raw[] {
  try {
    return look()
  } catch {
    return []
  }
}
