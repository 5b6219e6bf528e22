/** Ordinary tools that destroy files: which of them, and how they must be called for that. */
import type { Destructive, Rule } from './command-kind.ts'
import { ANYWHERE, baseName } from './command-words.ts'

/** What removes files one by one; many at a time when another program gives it the names. */
const removers = ['rm', 'shred', 'truncate', 'unlink']
/** Programs that start another one for many files. */
const starters = ['xargs', 'parallel', 'fd', 'fdfind']

/** Long options may be cut short: `--recurs`. What is too short for one is refused. */
const isOption = (word: string, name: string): boolean => /^--[a-z]/.test(word) && name.startsWith(word.split('=')[0]!)
const hasFlag = (words: readonly string[], letters: string, long: string): boolean =>
  words.some(word => isOption(word, long) || new RegExp(`^-[A-Za-z]*[${letters}]`).test(word))
/** Behind `--` there are no options. */
export function operandsOf(words: readonly string[]): string[] {
  const end = words.indexOf('--')
  return words.filter((word, i) => !word.startsWith('-') || (end >= 0 && i > end))
}

/** The names come from elsewhere. */
const starter: Rule = words =>
  words.some(word => removers.includes(baseName(word))) ? { operands: ANYWHERE } : undefined
const edit: Rule = words => (hasFlag(words, 'i', '--in-place') ? { operands: operandsOf(words) } : undefined)
/** What is on a device is in no snapshot; an image of one may be. */
const device = (words: readonly string[]): Partial<Destructive> => {
  const operands = operandsOf(words)
  return { operands, follows: true, irreversible: operands.some(operand => operand.startsWith('/dev/')) }
}
const recursive: Rule = words => (hasFlag(words, 'R', '--recursive') ? { operands: operandsOf(words) } : undefined)

export const fileRules: Record<string, Rule> = {
  rm: words => (hasFlag(words, 'rR', '--recursive') ? { operands: operandsOf(words) } : undefined),
  rimraf: words => ({ operands: operandsOf(words) }),
  find: words => {
    const commands = words.flatMap((word, i) =>
      /^-(?:exec|execdir|ok|okdir)$/.test(word) ? [baseName(words[i + 1] ?? '')] : [],
    )
    const destroys = words.includes('-delete') || commands.some(name => removers.includes(name))
    const first = findStart(words)
    const count = words.slice(first).findIndex(word => word.startsWith('-') || word === '(' || word === '!')
    return destroys
      ? { operands: words.slice(first, first + count), follows: /^-[HL]$/.test(words[0] ?? '') }
      : undefined
  },
  ...Object.fromEntries(starters.map(name => [name, starter])),
  dd: words => {
    const target = words.find(word => word.startsWith('of='))?.slice(3)
    return target === undefined ? undefined : { operands: [target], follows: true }
  },
  truncate: words => ({ operands: operandsOf(words), follows: true }),
  shred: words => ({ operands: operandsOf(words), follows: true }),
  rsync: words => {
    const operands = operandsOf(words)
    const sources = words.some(word => /^--remove-(?:source|sent)-files$/.test(word)) ? operands.slice(0, -1) : []
    const over = words.some(word => word.startsWith('--delete') || word === '--del') ? operands.slice(-1) : []
    return sources.length + over.length > 0 ? { operands: [...sources, ...over], follows: true } : undefined
  },
  mv: words => (hasFlag(words, 'n', '--no-clobber') ? undefined : moveTargets(words)),
  ...{ sed: edit, gsed: edit },
  perl: inPlace('acflnpsStTuUvwWX'),
  ruby: inPlace('alnpsSvwy'),
  ...{ awk: awkInPlace, gawk: awkInPlace },
  ...{ mkswap: device, blkdiscard: device },
  wipefs: words =>
    (hasFlag(words, 'a', '--all') || hasFlag(words, 'o', '--offset')) && !hasFlag(words, 'n', '--no-act')
      ? device(words)
      : undefined,
  // Modes and owners of everything at once.
  ...{ chmod: recursive, chown: recursive, chgrp: recursive },
}

/**
 * `-i` of an interpreter, which edits the files that are given it. `letters`: options that may stand before it in one word. What
 * follows the name of a script is the script's own.
 */
function inPlace(letters: string): Rule {
  const edits = new RegExp(`^-[${letters}0-9]*i`)
  const takesNext = new RegExp(`^-(?:[${letters}i0-9]*[eE]|[IrCM])$`)
  return words => {
    let at = 0
    let isEdited = false
    for (; words[at]?.startsWith('-') && words[at] !== '--'; at++) {
      isEdited ||= edits.test(words[at]!)
      if (takesNext.test(words[at]!)) at++
    }
    return isEdited ? { operands: operandsOf(words.slice(at)) } : undefined
  }
}

function awkInPlace(words: readonly string[]): Partial<Destructive> | undefined {
  const at = words.findIndex(word => /^(?:-i|--include=?)(?:inplace)?$/.test(word))
  const isEdited = at >= 0 && (words[at]!.endsWith('inplace') || words[at + 1] === 'inplace')
  return isEdited ? { operands: operandsOf(words.slice(at + 1)) } : undefined
}

/** What a move would overwrite: the destination, unless it is moved into, or what has the same name in it. */
function moveTargets(words: readonly string[]): Partial<Destructive> | undefined {
  const isTarget = (word: string): boolean => isOption(word, '--target-directory')
  const at = words.findIndex(word => /^-[A-Za-z]*t$/.test(word) || (isTarget(word) && !word.includes('=')))
  const joined = words.find(word => isTarget(word) && word.includes('='))
  const named = joined?.slice(joined.indexOf('=') + 1) ?? (at < 0 ? undefined : words[at + 1])
  const operands = operandsOf(words.filter((_, i) => at < 0 || i !== at + 1))
  const destination = named ?? operands.pop()
  if (destination === undefined) return undefined
  const inside = operands.map(source => `${destination}/${baseName(source.replace(/\/+$/, ''))}`)
  const isOver = named === undefined
  return {
    operands: [...(isOver ? [destination] : []), ...inside],
    unlessDirectory: isOver ? [destination] : [],
    follows: true,
  }
}

/** Where the places to start from begin: behind `-L`, `-H`, `-P`, `-O3`, `-D stat`. */
function findStart(words: readonly string[]): number {
  let at = 0
  while (/^-(?:[HLP]|O\d*|D)$/.test(words[at] ?? '')) at += words[at] === '-D' ? 2 : 1
  return at
}

/** Letters of options without which the helper need not hold them, and words (see `suspects` in command-kind.ts). */
export const fileOptions: Record<string, string> = {
  ...{ rm: 'rR', find: 'dxk', rsync: '', sed: 'i', gsed: 'i', perl: 'i', ruby: 'i', awk: 'i', gawk: 'i', wipefs: 'ao' },
  ...{ chmod: 'R', chown: 'R', chgrp: 'R' },
}
export const fileWords: Record<string, readonly string[]> = Object.fromEntries(starters.map(name => [name, removers]))
