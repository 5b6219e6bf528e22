/** Which commands the helper holds until we have looked at them: all that may destroy something, and few others. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { destructiveOf, suspects } from '../src/model/command-kind.ts'
import { rawToText } from '../src/model/raw-path.ts'
import { quoteCommand } from '../src/model/shell-quote.ts'
import { TracedCommand } from '../src/tracers/helper.ts'
import type { HelperDriver } from '../src/tracers/probe-helper.ts'

const names = suspects.map(each => each.split(/[=/?]/)[0]!)
/** What rules look for, and what stands around it. */
const vocabulary =
  '-r -R -rf -vR -f --recursive a b/c -- -delete -exec rm -ok -maxdepth 1 -name x of=y if=z --delete --del -a -i -ni.bak -n -e s/a/b/ --in-place -m pip uninstall remove ci prune rm run test install --prefix web volume system compose down ps status log reset --hard clean -fd checkout main stash list rebase push --force +main -C -c restore --staged drop truncate select -P -Rns -e --erase --purge del --mirror :old -pi -0777pi -Ilib -D -d --prune=now gc branch tag reflog expire --expire=now update-ref delete destroy s3 worktree xargs -0 /bin/rm inplace -iinplace -p'.split(
    ' ',
  )

const dangerousLines = [
  ['git checkout -p', 'git checkout -f', 'git restore -p', 'git switch -f main', 'git switch --discard-changes main'],
  ['git checkout -m main', 'git branch -D old', 'git branch -qf main HEAD~3', 'git tag -d v1', 'git update-ref -d r'],
  [
    'git reflog expire --expire=now --all',
    'git gc --prune=now',
    'git prune',
    'git worktree remove -f x',
    'git clean -d',
  ],
  ['git submodule deinit -f x', 'git read-tree -u --reset HEAD', 'git checkout-index -af', 'git mv -f a b'],
  ['perl -pi -e x f', 'perl -i.bak -pe x f', 'perl -0777 -pi -e x f', 'perl -lpi0 -e x f', 'ruby -pi -e x f'],
  ['gawk -i inplace x f', 'awk -iinplace x f', 'rsync -a --remove-source-files a b', 'xargs rm', 'xargs -n 1 rm -f'],
  ['rm --recurs a', 'sed --in-pl p f', 'gsed -i p f', 'pipx uninstall x', 'apt-get -t stable remove x'],
  ['apt-get -o a=b remove x', 'wipefs -a disk.img', 'mkswap disk.img', 'blkdiscard disk.img', 'mv --target d a'],
  ['xargs -0 /bin/rm', 'parallel rm', 'fd -e log -x rm', 'rimraf dist', 'chmod -R 777 .', 'chown -hR x .'],
  [
    'kubectl -n x delete pod y',
    'helm uninstall x',
    'terraform destroy',
    'terraform -chdir=x apply -destroy',
    'tofu destroy',
  ],
  [
    'docker rm -v x',
    'docker container prune',
    'docker compose rm -v',
    'aws s3 rm s3://x',
    'gh repo delete x',
    'psql -f x.sql',
  ],
].flat()

let directory: string

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'savepoint-held-'))
  mkdirSync(join(directory, 'bin'))
  for (const name of [...names, 'echo', 'wipe']) {
    const file = join(directory, 'bin', name)
    writeFileSync(file, '#!/bin/sh\n')
    chmodSync(file, 0o755)
  }
  symlinkSync('rm', join(directory, 'bin', 'delete-all'))
  for (const name of ['git-upload-pack', 'git-clean']) symlinkSync('git', join(directory, 'bin', name))
})

afterAll(() => rmSync(directory, { recursive: true }))

/** What was executed, and what of it was held, as lines. */
async function trace(command: string[], driver: HelperDriver): Promise<{ seen: string[]; held: string[] }> {
  const seen: string[] = []
  const held: string[] = []
  const traced = new TracedCommand({
    driver,
    command,
    cwd: directory,
    env: process.env,
    inherited: { descriptors: [], ignoredSignals: [] },
    allowIoUring: true,
    protect: [join(directory, 'home')],
    watch: undefined,
    hold: { names: [...suspects], maxMs: 60_000 },
    spool: undefined,
    onEvent(event) {
      if (event.type !== 'exec') return
      const line = event.argv.map(rawToText).join(' ').replace('./bin/', '')
      seen.push(line)
      if (!event.held) return
      held.push(line)
      traced.release(event.id)
    },
    onBatch() {},
    onHelperDied() {},
    onStop() {},
  })
  await traced.ended
  return { seen, held }
}

/** Runs all of them in one shell; returns those that were held. */
async function heldOf(commands: string[][], driver: HelperDriver = 'seccomp'): Promise<string[]> {
  const file = join(directory, 'script')
  writeFileSync(file, commands.map(([name, ...words]) => quoteCommand([`./bin/${name}`, ...words])).join('\n'))
  const { seen, held } = await trace(['sh', file], driver)
  expect(seen).toEqual(expect.arrayContaining(commands.map(words => words.join(' '))))
  return held
}

test.each<HelperDriver>(['seccomp', 'ptrace'])('%s: whatever destroys is held, in whatever words', async driver => {
  const word = fc.constantFrom(...vocabulary)
  const commands = fc
    .sample(fc.tuple(fc.constantFrom(...names), fc.array(word, { maxLength: 5 })), 400)
    .map(([name, words]) => [name, ...words])
  const dangerous = commands.filter(command => destructiveOf(command) !== undefined)
  expect(dangerous.length).toBeGreaterThan(20)
  const held = new Set(await heldOf(commands, driver))
  for (const command of dangerous) expect(held).toContain(command.join(' '))
})

test.each<HelperDriver>(['seccomp', 'ptrace'])('%s: each way to destroy is held', async driver => {
  const lines = dangerousLines.map(line => line.split(' '))
  for (const line of lines) expect([line, destructiveOf(line)]).not.toEqual([line, undefined])
  expect(await heldOf(lines, driver)).toEqual(dangerousLines)
})

test('what cannot destroy anything does not wait', async () => {
  const lines = [
    ['git status', 'git log --oneline', 'git diff HEAD', 'git commit -m x', 'git rev-parse --git-dir', 'git add -A'],
    ['rm -f conftest.o', 'rm a', 'sed -n p f', 'sed s/-i/x/ f', 'find . -name x', 'rsync -a x y'],
    ['npm run build', 'npm test', 'yarn add x', 'python3 script.py', 'python3 -c 1', 'docker ps', 'apt-get install x'],
    ['cargo build', 'dpkg -l', 'rpm -qa', 'pacman -S x', 'apk add x', 'uv run x', 'bundle exec rake'],
    [
      'git branch --show-current',
      'git branch -a',
      'git branch new',
      'git tag -a v1 -m x',
      'git reflog',
      'git gc --auto',
    ],
    ['xargs grep -l x', 'xargs -0 ls', 'perl -ne print', 'awk -F: x', 'chmod +x f', 'gh pr list', 'kubectl get pods'],
    ['git -C sub status', 'git --no-pager log', 'git -c a.b=c -C sub --no-optional-locks diff'],
    ['echo rm -rf x', 'wipe -rf x', 'git-upload-pack x', 'gsed -n p f', 'pipx list', 'wipefs disk.img'],
  ].flat()
  expect(await heldOf(lines.map(line => line.split(' ')))).toEqual([])
})

test('what may be an alias, has its words elsewhere, or comes by another name is looked at', async () => {
  const lines = [
    'git st',
    'git-clean -fd',
    'git -C sub st',
    'git -C status',
    'git -C status reset --hard',
    'git --unknown status',
    'git -C sub branch -D old',
    'git',
    'python3 /usr/bin/pip uninstall x',
    'python3 -Im pip uninstall x',
    'git branch -D old',
    'git branch --delete old',
    'git gc --prune=now',
    'xargs -0 /bin/rm -f',
    'perl -0777pi -e x f',
  ]
  expect(await heldOf([...lines, 'delete-all -rf x', 'busybox rm -rf x'].map(line => line.split(' ')))).toEqual([
    ...lines,
    'delete-all -rf x',
    'busybox rm -rf x',
  ])
})

test('so is one whose arguments are too many to be told', async () => {
  const numbers = Array.from({ length: 5000 }, (_, i) => String(i))
  const { held } = await trace(['./bin/git', 'status', ...numbers], 'seccomp')
  expect(held).toHaveLength(1)
})
