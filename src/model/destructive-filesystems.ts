/** What has a filesystem itself take files away, or bring others: no call of the system names them. */
import type { Rule } from './command-kind.ts'
import { ANYWHERE, baseName } from './command-words.ts'

const plain = (words: readonly string[]): string[] => words.filter(word => !word.startsWith('-'))

/** Its words can be shortened: `btrfs su del`. */
const btrfs: Rule = words => {
  const [group = '', verb = '', ...paths] = plain(words)
  return /^su/.test(group) && /^d/.test(verb) ? { operands: paths } : undefined
}

/** It names no paths, and where a dataset is mounted only `zfs` knows: it may be the target. Snapshots and bookmarks are no files. */
const zfs: Rule = words => {
  const [verb = '', ...names] = plain(words)
  const takes =
    verb === 'rollback' || verb === 'receive' || verb === 'recv' || (verb === 'destroy' && !/[@#]/.test(names.join()))
  return takes ? { operands: ANYWHERE } : undefined
}

const zpool: Rule = words => (/^(?:destroy|export)$/.test(plain(words)[0] ?? '') ? { operands: ANYWHERE } : undefined)

export const filesystemRules: Record<string, Rule> = { btrfs, zfs, zpool }

/** First words with which the helper need not hold them. */
export const harmlessForFilesystems: Record<string, string> = {
  btrfs: 'filesystem fi scrub send property balance device check inspect-internal',
  zfs: 'list get set create snapshot diff send mount version',
  zpool: 'list status get iostat version',
}

/** Whether what it changes cannot be told from calls. Asked of every command. */
export function isBeyondTrace([first = '', ...words]: readonly string[]): boolean {
  const program = baseName(first)
  return Object.hasOwn(filesystemRules, program) && filesystemRules[program]!(words, program) !== undefined
}
