/** What a call of git may destroy. */
import type { Destructive } from './command-kind.ts'
import type { GitCall } from './git-call.ts'

/** What lies in a git directory while something can be aborted or skipped. */
const underWay: Record<string, string[]> = {
  rebase: ['rebase-merge', 'rebase-apply'],
  am: ['rebase-apply'],
  merge: ['MERGE_HEAD'],
  'cherry-pick': ['CHERRY_PICK_HEAD', 'sequencer'],
  revert: ['REVERT_HEAD', 'sequencer'],
}

/**
 * Verbs with which the helper need not hold it (see `suspects` in command-kind.ts); `branch=dD`: unless an option has one of these
 * letters, or a long one begins with it. No alias can have the name of a command of git's own. Before them: `-C=+` has a value.
 */
export const harmlessGit =
  '-C=+ -c=+ --no-pager --no-optional-locks --literal-pathspecs add annotate apply blame branch=dDfMC cat-file check-ignore clone commit config describe diff diff-files diff-index diff-tree fetch for-each-ref fsck gc=p grep hash-object index-pack init log ls-files ls-remote ls-tree maintenance merge-base name-rev pack-objects pull reflog=e remote rev-list rev-parse shortlog show show-ref status symbolic-ref tag=df unpack-objects update-index update-ref=d upload-pack version write-tree'

export function destructiveGit({ verb, words, directory, gitDirectory }: GitCall): Partial<Destructive> | undefined {
  const places = gitDirectory === undefined ? [directory] : [directory, gitDirectory]
  const here = { operands: places }
  const whole = { operands: places, wholeRepository: true }
  const inDirectory = (path: string): string =>
    directory === '.' || path.startsWith('/') ? path : `${directory}/${path}`
  const plain = words.filter(word => !word.startsWith('-'))
  const has = (letters: string, ...long: string[]): boolean =>
    words.some(word => long.includes(word) || new RegExp(`^-[A-Za-z]*[${letters}]`).test(word))
  switch (verb) {
    case 'reset':
      return words.some(word => /^--(?:hard|merge|keep)$/.test(word)) ? whole : undefined
    case 'clean':
      // By its configuration it may do without `-f`.
      return has('n', '--dry-run') && !has('f', '--force') ? undefined : here
    case 'checkout': {
      if (has('fpm', '--force', '--patch', '--merge')) return whole
      if (has('bB', '--orphan')) return undefined
      const [first, ...more] = plain
      if (words.includes('--') || more.length > 0) return here
      // A branch, or a path: only what exists counts.
      return first === undefined ? undefined : { operands: [inDirectory(first)] }
    }
    case 'switch':
      return has('fm', '--force', '--discard-changes', '--merge') ? whole : undefined
    case 'restore':
      return has('S', '--staged') && !has('W', '--worktree') ? undefined : here
    case 'stash':
      return /^(?:list|show)$/.test(words[0] ?? '') ? undefined : whole
    case 'rebase':
      return words.some(word => /^--(?:abort|skip|continue|quit)$/.test(word))
        ? { ...whole, underWay: underWay[verb] }
        : whole
    case 'filter-branch':
    case 'filter-repo':
      return whole
    case 'checkout-index':
    case 'mv':
      return has('f', '--force') ? here : undefined
    case 'read-tree':
      return has('u') || words.includes('--reset') ? whole : undefined
    case 'worktree':
      return words[0] === 'remove' && has('f', '--force') ? { operands: plain.slice(1).map(inDirectory) } : undefined
    case 'submodule':
      return words[0] === 'deinit' ? whole : undefined
    // What names commits, or keeps them although nothing names them any more.
    case 'branch':
      return has('dDfMC', '--delete', '--force') ? whole : undefined
    case 'tag':
      return has('df', '--delete', '--force') ? whole : undefined
    case 'update-ref':
      return has('d', '--delete') ? whole : undefined
    case 'gc':
      return words.some(word => word.startsWith('--prune')) ? whole : undefined
    case 'prune':
      return whole
    case 'reflog':
      return words[0] === 'expire' && words.some(word => word.startsWith('--expire')) ? whole : undefined
    case 'rm':
      return words.includes('--cached') ? undefined : here
    case 'merge':
    case 'cherry-pick':
    case 'revert':
    case 'am':
      return words.includes('--abort') ? { ...whole, underWay: underWay[verb] } : undefined
    case 'push':
      return words.some(word => /^(?:--force|--delete$|--mirror$|--prune$|\+|:.)/.test(word)) || has('fd')
        ? { ...here, irreversible: true }
        : undefined
    default:
      return undefined
  }
}
