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

export function destructiveGit({ verb, words, directory, gitDirectory }: GitCall): Partial<Destructive> | undefined {
  const places = gitDirectory === undefined ? [directory] : [directory, gitDirectory]
  const here = { operands: places }
  const whole = { operands: places, wholeRepository: true }
  const plain = words.filter(word => !word.startsWith('-'))
  const has = (letters: string, ...long: string[]): boolean =>
    words.some(word => long.includes(word) || new RegExp(`^-[A-Za-z]*[${letters}]`).test(word))
  switch (verb) {
    case 'reset':
      return words.some(word => /^--(?:hard|merge|keep)$/.test(word)) ? whole : undefined
    case 'clean':
      return has('f', '--force') ? here : undefined
    case 'checkout': {
      if (has('f', '--force')) return whole
      if (has('bB', '--orphan')) return undefined
      const [first, ...more] = plain
      if (words.includes('--') || more.length > 0) return here
      // A branch, or a path: only what exists counts.
      return first === undefined ? undefined : { operands: [directory === '.' ? first : `${directory}/${first}`] }
    }
    case 'switch':
      return has('f', '--force', '--discard-changes') ? whole : undefined
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
