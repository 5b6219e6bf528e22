/**
 * A user wraps their own shell, destroys the repository in every way that comes to mind, and gets it all back with one
 * command. Everything here is done by the built program with the rights of an ordinary user; the trees are compared
 * without any of our code.
 */
import { existsSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { asOrdinaryUser, builtCommand, giveToUser, savepointAsUser, shellAsUser } from './support/built-cli.ts'
import { fullImageOf } from './support/full-image.ts'
import { differences } from './support/tree-image.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace('my repository')
  space.sh(String.raw`
    git init -q -b main .
    printf '.env\n' > .gitignore
    mkdir -p src/deep/er docs empty bin 'with space'
    for i in 1 2 3 4 5 6 7 8; do echo "export const n$i = $i" > src/deep/er/f$i.ts; done
    printf '\000\377\001binary\r\n' > docs/picture.bin
    head -c 300000 /dev/urandom > docs/noise
    echo '#!/bin/sh' > bin/tool; chmod 755 bin/tool
    echo 'new
line' > "$(printf 'a\nb')"; echo x > 'with space/-rf'; echo y > "$(printf 'caf\303\251')"
    printf 'snapshots:\n  retention:\n    auto_max: 50\n' > savepoint.yaml
    ln -s src/deep link; ln -s /nonexistent dangling; ln bin/tool bin/same
    git add .; git commit -qm one; git tag -a v1 -m v1; git branch side
    echo 2 >> src/deep/er/f1.ts; git commit -qam two; git pack-refs --all; git gc -q
    echo stashed >> src/deep/er/f2.ts; git stash -q
    echo staged > staged; git add staged; echo 3 >> src/deep/er/f3.ts; echo untracked > untracked
    echo SECRET=1 > .env; chmod 600 .env; chmod 750 src; touch -d '2019-03-04 05:06:07.123456789' docs/noise`)
  giveToUser(space)
})
afterEach(() => space.remove())

/** What git itself says about the repository, asked as its owner. */
const gitReport = () =>
  shellAsUser(
    space,
    'export GIT_OPTIONAL_LOCKS=0; git fsck --full --strict --no-progress; git status --porcelain; git stash list; git for-each-ref; git log --oneline --all',
  )

const garbage = `find . -type f -exec sh -c 'for f; do chmod u+w "$f"; head -c 5000 /dev/urandom > "$f"; done' sh {} +`
const ways: [what: string, script: string][] = [
  ['rm -rf .git', 'rm -rf .git'],
  ['rm -rf of everything', 'rm -rf ./* ./.[!.]*'],
  [
    'git clean -fdx and reset --hard',
    'git clean -qfdx; git reset -q --hard v1; git stash drop -q; git branch -qD side',
  ],
  [
    'git gc of a rewritten history',
    'git checkout -q -f --orphan x; git rm -rqf .; rm -rf .git/logs .git/refs/*; git init -q; git gc -q --prune=now || :',
  ],
  ['sed -i on everything', `find . -type f -exec sed -i 's/[a-z]/Z/g' {} +`],
  ['half of the tree moved', 'mkdir x; mv src docs .git x; mv x/src/deep/er bin'],
  ['chmod -R 000', 'find . -depth -mindepth 1 -not -type l -exec chmod 000 {} +'],
  ['chmod -R 777', 'chmod -R 777 .'],
  ['chmod 000 of the workspace itself', 'chmod 000 .'],
  ['chmod 000 of everything, the workspace included', 'find . -depth -not -type l -exec chmod 000 {} + || :'],
  ['the workspace shut behind what was removed', 'rm -r src; echo x > made; chmod 000 .'],
  ['chmod -R 644 of what was left', 'rm -r src; echo x > made; chmod -R 644 . || :'],
  ['every file emptied in place', `find . -type f -exec sh -c 'for f; do chmod u+w "$f"; : > "$f"; done' sh {} +`],
  [
    'ignore rules that hide the deed',
    'echo "*" > .gitignore; echo "*" >> .git/info/exclude; echo spoiled > untracked; echo spoiled > .env; rm -rf src; : > .git/index',
  ],
  ['every file and directory removed by find -delete', 'find . -mindepth 1 -delete'],
  [
    'files become directories and links',
    'rm -rf src bin .env .git/HEAD; echo f > src; ln -s / bin; mkdir -p untracked.d .git/HEAD; ln -s a .env; rm untracked; mkdir untracked; echo x > untracked/x; ln -sfn .. link',
  ],
  ['binary garbage over it', garbage],
  ['the whole workspace deleted', 'cd ..; rm -rf "my repository"'],
  ['the whole workspace moved away', 'cd ..; mv "my repository" elsewhere'],
  [
    'all names made non-UTF-8',
    String.raw`find . -depth -mindepth 1 -not -name "$(printf 'a\nb')" | while IFS= read -r f; do mv -- "$f" "$(dirname -- "$f")/$(printf '\377\376')$(basename -- "$f")"; done`,
  ],
]

describe('a user destroys the repository on purpose', () => {
  it.each(ways)('%s: one undo brings it all back, one redo destroys it again', (_what, script) => {
    const said = gitReport()
    const before = fullImageOf(space.dir)
    expect(said).toMatchObject({ status: 0, stderr: '' })

    const run = savepointAsUser(space, ['run', '--', 'sh', '-c', script])
    expect(run).toMatchObject({ status: 0, stdout: '' })
    expect(run.stderr).toMatch(/^savepoint: protecting .*my repository \(snap_[a-z2-7]{8}, \d+ files\)\n/)
    expect(run.stderr).toMatch(/\nTo undo: savepoint undo\n$/)
    const isGone = !existsSync(space.dir)
    const destroyed = isGone ? new Map<string, string>() : fullImageOf(space.dir)
    expect(differences(before, destroyed)).not.toEqual([])

    const undo = savepointAsUser({ ...space, env: space.env, dir: space.base } as Workspace, ['undo', '-t', space.dir])
    expect(undo).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^Undone: run_.*\nTo redo: savepoint -t .* redo\n$/s),
    })
    expect(undo.stdout).not.toContain('Left alone')
    expect(differences(before, fullImageOf(space.dir))).toEqual([])
    expect(gitReport()).toEqual(said)

    const redo = savepointAsUser(space, ['redo'])
    expect(redo).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^Redone: run_.*\nTo undo: savepoint undo\n$/s),
    })
    if (!isGone) expect(differences(destroyed, fullImageOf(space.dir))).toEqual([])
  })

  it('ten times in a row without taking anything back: each undo goes one step further', () => {
    const before = fullImageOf(space.dir)
    const steps = [
      'rm -rf .git',
      'rm -rf src',
      'chmod -R 700 .',
      ': > .env',
      'mv docs dcos',
      'rm -rf ./*',
      'echo x > new',
    ]
    for (const step of steps) expect(savepointAsUser(space, ['run', '-q', '--', 'sh', '-c', step]).status).toBe(0)
    for (const _ of steps)
      expect(savepointAsUser(space, ['undo', '-q'])).toMatchObject({ status: 0, stdout: '', stderr: '' })
    expect(differences(before, fullImageOf(space.dir))).toEqual([])
    const nothingLeft = savepointAsUser(space, ['undo'])
    expect(nothingLeft).toEqual({
      status: 1,
      signal: null,
      stdout: '',
      stderr:
        'savepoint: Cannot undo: there is nothing to undo\n' +
        '  hint: `savepoint log` shows the snapshots that you can roll back to\n',
    })
  })

  it('the shell that was wrapped is the one that destroys: savepoint run -- sh, typed into', () => {
    const before = fullImageOf(space.dir)
    const [program, ...args] = [...asOrdinaryUser.before, ...builtCommand]
    const typed = 'rm -rf .git src\necho done\nexit 9\n'
    const line = [program, ...args, 'run', '--', 'sh'].map(word => `'${word}'`).join(' ')
    const shell = shellAsUser(space, `set +e; printf '%s' '${typed}' | ${line}; echo "code $?"`)
    expect(shell.stdout).toBe('done\ncode 9\n')
    expect(shell.stderr).toContain('exit 9')
    expect(savepointAsUser(space, ['undo']).status).toBe(0)
    expect(differences(before, fullImageOf(space.dir))).toEqual([])
  })
})
