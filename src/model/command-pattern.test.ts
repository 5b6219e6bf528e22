import { expect, test } from 'vitest'
import { matchesCommand, patternIn } from './command-pattern.ts'

test.each<[pattern: string, line: string, file: string, isMeant: boolean]>([
  ['./wipe', './wipe all', '/p q/wipe', true],
  ['./wipe al*', 'wipe all', '/p q/wipe', true],
  ['./wipe', 'wipe', '/usr/bin/wipe', false],
  // By a link to something else.
  ['tools/wipe', '../tools/./wipe', '/usr/bin/clean', true],
  ['tools/wipe', './tools/wipe', '/usr/bin/clean', false],
  ['tools/clear.py', 'python3 -u ../tools/clear.py x', '/usr/bin/python3', true],
  ['tools/wipe', 'bash -e ../tools/wipe x', '/usr/bin/bash', true],
  ['wipe', 'sh tools/wipe', '/bin/dash', true],
  ['wipe', 'bash -euo pipefail tools/wipe', '/usr/bin/bash', true],
  ['wipe', 'bash +x tools/wipe', '/usr/bin/bash', true],
  ['wipe', 'sh -ec wipe', '/bin/dash', false],
  ['/opt/my\\ tools/wipe', 'wipe', '/opt/my tools/wipe', true],
  ['/opt/wipe', 'wipe', '/opt/wipe/wipe', false],
  ['*/tools/wipe', 'wipe', '/elsewhere/tools/wipe', true],
  ['tools/*', 'wipe', '/p q/tools/deep/wipe', true],
  ['wipe', 'x', '/p q/wipe', false],
  ['tool \\*', 'tool *', '/bin/tool', true],
  ['tool \\*', 'tool x', '/bin/tool', false],
])('the pattern %s of a directory, and %s there, which is %s: %s', (pattern, line, file, isMeant) => {
  const patterns = [patternIn('/p q', pattern)]
  expect(matchesCommand(patterns, line.split(' '), { file, cwd: '/p q/sub' })).toBe(isMeant)
})
