/**
 * What is left of what a command destroys although no snapshot was taken right before it: what was there before the run is put aside, and
 * what the run has made is kept when a call of its own removes, replaces or empties it (decisions 011 and 014).
 */
import { packageRules } from './destructive-packages.ts'

/**
 * all: what the run has made, too. files: the same, but for what the run did in a git directory, whose content is not kept. before:
 * only what was there before the run; the rest may be overwritten in place, or get other attributes. nothing: others do it, a
 * server or the filesystem, whose calls nobody sees.
 */
export type KeptAnyway = 'all' | 'files' | 'before' | 'nothing'

const removing: ReadonlySet<string> = new Set([
  ...['rm', 'rimraf', 'find', 'xargs', 'parallel', 'fd', 'fdfind', 'truncate', 'mv'],
  ...['sed', 'gsed', 'perl', 'ruby', 'awk', 'gawk'],
])
const byOthers: ReadonlySet<string> = new Set([
  ...['btrfs', 'zfs', 'zpool', 'docker', 'podman', 'docker-compose'],
  ...['psql', 'mysql', 'mariadb', 'mysqladmin', 'dropdb', 'mongosh', 'mongo', 'redis-cli'],
])
/** Of git: what takes away names of commits, or commits. What others do, git does by removing and replacing files. */
const ofHistory: ReadonlySet<string> = new Set([
  ...['branch', 'tag', 'update-ref', 'gc', 'prune', 'reflog', 'filter-branch', 'filter-repo', 'push'],
])

export function keptAnyway(program: string, words: readonly string[]): KeptAnyway {
  if (byOthers.has(program)) return 'nothing'
  if (Object.hasOwn(packageRules, program)) return 'all'
  if (program === 'dd') return words.some(word => /^conv=.*notrunc/.test(word)) ? 'before' : 'files'
  if (program === 'rsync') return words.some(word => /^--(?:inp|append|write-d)/.test(word)) ? 'before' : 'files'
  return removing.has(program) ? 'files' : 'before'
}

export function keptAnywayOfGit(verb: string, [first = '']: readonly string[]): KeptAnyway {
  if (verb === 'stash') return /^(?:drop|clear)$/.test(first) ? 'before' : 'all'
  return ofHistory.has(verb) ? 'before' : 'all'
}
