import { expect, test } from 'vitest'
import { destructiveOf } from './command-kind.ts'
import type { KeptAnyway } from './kept-anyway.ts'

test.each<[line: string, kept: KeptAnyway]>([
  ['rm -rf a', 'files'],
  ['/usr/bin/rm -r .git', 'files'],
  ['find . -delete', 'files'],
  ['sed -i s/a/b/ f', 'files'],
  ['gsed -i s/a/b/ f', 'files'],
  ['mv a b', 'files'],
  ['truncate -s 0 f', 'files'],
  ['rsync -a --delete a b', 'files'],
  ['rsync -a --delete --inplace a b', 'before'],
  ['rsync -a --delete --inpl a b', 'before'],
  ['rsync -a --delete --append-verify a b', 'before'],
  ['dd if=x of=y', 'files'],
  ['dd if=x of=y conv=sync,notrunc', 'before'],
  ['shred f', 'before'],
  ['chmod -R 777 d', 'before'],
  ['mkfs.ext4 image', 'before'],
  ['npm uninstall x', 'all'],
  ['git reset --hard', 'all'],
  ['git stash', 'all'],
  ['git stash drop', 'before'],
  ['git branch -D x', 'before'],
  ['git gc --prune=now', 'before'],
  ['sqlite3 app.db drop table x', 'before'],
  ['psql -c drop table x', 'nothing'],
  ['docker volume rm x', 'nothing'],
  ['btrfs subvolume delete a', 'nothing'],
  ['zfs destroy -r tank/a', 'nothing'],
])('of what %s destroys there is left without a snapshot: %s', (line, kept) => {
  expect(destructiveOf(line.split(' '))?.keptAnyway).toBe(kept)
})

test('how a command of the user destroys is not known', () => {
  expect(destructiveOf(['wipe', 'a'], { patterns: ['wipe a'] })?.keptAnyway).toBe('before')
})
