import { expect, test } from 'vitest'
import { onlyShowsCommit } from './git-commit.ts'

test.each<[line: string, commits: boolean]>([
  ['--dry-run', false],
  ['--dry', false],
  ['-a --short', false],
  ['--porcelain', false],
  ['--long -v', false],
  ['-am x -z', false],
  ['-az', false],
  ['--null', false],
  ['--help', false],
  ['-m --dry-run', true],
  ['-am --short', true],
  ['-mz', true],
  ['--message --long', true],
  ['--message=x --author --porcelain', true],
  ['--date now --amend', true],
  ['-Skeyz -uz', true],
  ['-m x -- --dry-run', true],
])('git commit %s commits: %s', (line, commits) => {
  expect(onlyShowsCommit(line.split(' '))).toBe(!commits)
})
