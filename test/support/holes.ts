/** Files with holes: changed at random, and compared with what they were, hole by hole. */
import { closeSync, existsSync, ftruncateSync, openSync, readdirSync, readFileSync, statSync, writeSync } from 'node:fs'
import { addon } from '../../src/native/addon.ts'
import { noise } from './tree-ops.ts'
import type { Workspace } from './workspace.ts'

const BLOCK_BYTES = 4096
/** Those above a megabyte are chunked, or cloned where that can be. */
const SIZES = [3 * BLOCK_BYTES, 300_000, 1 << 20, 3_000_001]
const WRITES = [1, 100, BLOCK_BYTES, 70_000, 400_000]
const FILES = 6

interface Holed {
  content: Buffer
  /** Offset and length, by turns, of what is no hole. */
  data: number[]
}

export function holedIn(directory: string): Map<string, Holed> {
  return new Map(
    readdirSync(directory).map(name => {
      const path = `${directory}/${name}`
      const fd = openSync(path, 'r')
      try {
        return [name, { content: readFileSync(path), data: [...addon.dataSegments(fd, statSync(path).size)] }]
      } finally {
        closeSync(fd)
      }
    }),
  )
}

/** What is wrong: other bytes, or data where a hole was. What was zeros may be a hole. */
export function holeProblems(before: Map<string, Holed>, after: Map<string, Holed>): string[] {
  const names = [...new Set([...before.keys(), ...after.keys()])]
  return names.flatMap(name => {
    const [was, is] = [before.get(name), after.get(name)]
    if (!was || !is) return [`${name} ${was ? 'is missing' : 'is too many'}`]
    if (!was.content.equals(is.content)) return [`${name} has other bytes`]
    const known = new Set(blocksOf(was))
    const filled = blocksOf(is).filter(block => !known.has(block))
    return filled.length > 0 ? [`${name} has data in ${filled.length} blocks that were holes`] : []
  })
}

function blocksOf({ data }: Holed): number[] {
  const blocks: number[] = []
  for (let i = 0; i < data.length; i += 2)
    for (let at = data[i]!; at < data[i]! + data[i + 1]!; at += BLOCK_BYTES) blocks.push(Math.floor(at / BLOCK_BYTES))
  return blocks
}

/** One change: a new file that is a hole, a write, a hole punched (where that can be done), another length, a copy. */
export function mutateHoles(space: Workspace, random: (below: number) => number): void {
  const name = `f${random(FILES)}`
  const path = space.at(name)
  const size = SIZES[random(SIZES.length)]!
  const kind = existsSync(path) ? random(6) : 0
  if (kind === 4)
    space.sh(`fallocate -p -o ${random(200) * BLOCK_BYTES} -l ${(1 + random(60)) * BLOCK_BYTES} ${name} || true`)
  else if (kind === 5) space.sh(`cp --sparse=always ${name} f${FILES}`)
  else {
    const fd = openSync(path, existsSync(path) ? 'r+' : 'w')
    try {
      if (kind === 0) for (const length of [0, size]) ftruncateSync(fd, length)
      else if (kind === 1) ftruncateSync(fd, random(2 * size))
      else
        writeSync(
          fd,
          noise(WRITES[random(WRITES.length)]!, random(1000)),
          0,
          undefined,
          random(statSync(path).size + 1),
        )
    } finally {
      closeSync(fd)
    }
  }
}
