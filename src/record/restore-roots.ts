/** Below which directories a bundle is restored in place: each is planned and carried out on its own, on one filesystem. */
import { statSync } from 'node:fs'
import { isWithin, type Raw, rawToBytes } from '../model/raw-path.ts'
import type { BundleFile } from './bundle.ts'
import { isBelow } from './path-trie.ts'

export interface RestoreRoot {
  directory: Raw
  files: BundleFile[]
}

const above = (path: Raw): Raw => path.slice(0, Math.max(path.lastIndexOf('/'), 1))

/** The nearest directory above a path that exists; its device tells which filesystem that is. */
function nearest(path: Raw): { directory: Raw; dev: number } {
  for (let directory = above(path); ; directory = above(directory)) {
    const stat = statSync(rawToBytes(directory), { throwIfNoEntry: false })
    if (stat?.isDirectory()) return { directory, dev: stat.dev }
    if (directory === '/') throw new Error('there is no root directory')
  }
}

/**
 * `start`: where the command started; undefined where that is gone. Others only with `anywhere`: then the nearest directories
 * that exist, as few as there can be.
 */
export function restoreRoots(
  files: readonly BundleFile[],
  start: Raw | undefined,
  anywhere: boolean,
): { roots: RestoreRoot[]; outside: number } {
  const inside = start === undefined ? [] : files.filter(({ raw }) => isBelow(raw, start))
  const others = start === undefined ? files : files.filter(({ raw }) => !isBelow(raw, start))
  const roots: RestoreRoot[] = inside.length > 0 ? [{ directory: start!, files: inside }] : []
  // Where the output of the command went is nobody's loss.
  if (!anywhere) return { roots, outside: others.filter(({ inherited }) => !inherited).length }
  const found = others.map(file => ({ file, ...nearest(file.raw) }))
  const tops = [...found].sort((a, b) => a.directory.length - b.directory.length)
  const chosen: { directory: Raw; dev: number; files: BundleFile[] }[] = []
  for (const { directory, dev } of tops) {
    const isCovered = chosen.some(
      top => top.dev === dev && isWithin(directory, top.directory === '/' ? '' : top.directory),
    )
    if (!isCovered) chosen.push({ directory, dev, files: [] })
  }
  for (const { file, directory, dev } of found) {
    const top = chosen.find(
      each => each.dev === dev && isWithin(directory, each.directory === '/' ? '' : each.directory),
    )
    top!.files.push(file)
  }
  return { roots: [...roots, ...chosen.filter(({ files: below }) => below.length > 0)], outside: 0 }
}
