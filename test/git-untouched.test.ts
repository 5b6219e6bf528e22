/** G1, G3, G4: the user's repository is never written to, never runs code through us, and is not even needed. */
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { differences, imageOf } from './support/tree-image.ts'
import { Workspace } from './support/workspace.ts'

const CYCLES = 100

let space: Workspace
beforeEach(() => {
  space = new Workspace()
})
afterEach(() => space.remove())

describe('G1: the repository of the user', () => {
  it(`is byte-identical after ${CYCLES} cycles of snapshot and rollback of other files`, async () => {
    space.sh(`git init -q -b main .; echo one > tracked; git add tracked; git commit -qm one
      echo two > tracked; git stash -q; git branch side; git tag v1; echo three > tracked; git add tracked
      printf '#!/bin/sh\nexit 1\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; echo four > tracked`)
    const repository = imageOf(space.at('.git'), { untouched: true })
    expect(repository.has('index') && repository.has('logs/refs/stash')).toBe(true)
    const savepoint = await space.open()
    for (let cycle = 0; cycle < CYCLES; cycle++) {
      space.write('work/file', `state ${cycle}`)
      const { id } = await savepoint.snapshot()
      space.write('work/file', 'spoiled')
      space.write('work/new', 'made by the agent')
      const { files } = await savepoint.rollback(id)
      expect(files).toEqual({ created: 0, deleted: 1, replaced: 1, metadata: 0 })
    }
    expect(space.read('work/file')).toBe(`state ${CYCLES - 1}`)
    expect(differences(repository, imageOf(space.at('.git'), { untouched: true }))).toEqual([])
  })

  it('is not written to where its index is sparse, and what is tracked there is known', async () => {
    space.sh(`git init -q .; mkdir -p src away; for i in 1 2 src/a away/b away/tracked.log; do echo $i > $i; done; echo '*.log' > .gitignore
      git add -f .; git commit -qm one; git sparse-checkout set --cone --sparse-index src; git rm -q --cached 2
      git ls-files --sparse | grep -qx away/`)
    space.write('away/tracked.log', 'made again')
    space.write('away/other.log', 'ignored')
    const before = imageOf(space.at('.git'), { untouched: true })
    const savepoint = await space.open()
    await savepoint.snapshot()
    expect(differences(before, imageOf(space.at('.git'), { untouched: true }))).toEqual([])
    const covered = async (path: string) => (await savepoint.coverage(path)).covered
    expect([await covered('away/tracked.log'), await covered('away/other.log')]).toEqual([true, false])
    const inner = await space.open({ target: space.at('away') })
    expect((await inner.snapshot()).files).toBe(1)
    expect(differences(before, imageOf(space.at('.git'), { untouched: true }))).toEqual([])
    const { run } = await savepoint.run({ command: ['git', 'rm', '-q', '--cached', '1'] })
    const undone = await savepoint.undo()
    expect(undone).toMatchObject({ operation: { detail: { run: run!.id } }, restore: { leftAlone: [] } })
    expect(space.git('ls-files', '--', '1').trim()).toBe('1')
  })

  it('is not written to by any question either', async () => {
    space.sh(`git init -q .; echo x > ignored; echo ignored > .gitignore; git add -f ignored .gitignore; git commit -qm one
      touch -d @1000000000 ignored`)
    const savepoint = await space.open()
    await savepoint.snapshot()
    const before = imageOf(space.dir, { untouched: true })
    await savepoint.status()
    await savepoint.changes()
    await savepoint.coverage('ignored')
    await savepoint.history('ignored')
    await savepoint.rollback(savepoint.head().id, { dryRun: true })
    expect(differences(before, imageOf(space.dir, { untouched: true }))).toEqual([])
  })
})

describe('G4: a repository that names programs', () => {
  it('never runs them through us', async () => {
    const marker = join(space.base, 'marker')
    const program = join(space.base, 'program')
    writeFileSync(program, `#!/bin/sh\necho "$@" >> '${marker}'\ncat\n`)
    chmodSync(program, 0o755)
    space.sh(`git init -q -b main .; git init -q inner; echo 'ignored' > .gitignore; echo x > ignored; echo a > a.txt; echo b > b.bin
      git add -f .gitignore ignored a.txt b.bin; git commit -qm one; echo '* filter=evil diff=evil' > .gitattributes`)
    const settings = {
      'core.fsmonitor': program,
      'core.hooksPath': join(space.base, 'hooks'),
      'core.pager': program,
      'core.editor': program,
      'core.sshCommand': program,
      'core.gitProxy': program,
      'core.askPass': program,
      'core.alternateRefsCommand': program,
      'diff.external': program,
      'diff.evil.textconv': program,
      'diff.evil.command': program,
      'filter.evil.clean': program,
      'filter.evil.smudge': program,
      'filter.evil.process': program,
      'filter.evil.required': 'true',
      'gpg.program': program,
      'commit.gpgSign': 'true',
      'credential.helper': `!${program}`,
      'uploadpack.packObjectsHook': program,
      'alias.ls-files': `!${program}`,
      'extensions.partialClone': 'origin',
      'remote.origin.url': `ext::${program}`,
      'remote.origin.promisor': 'true',
      'remote.origin.uploadpack': program,
    }
    mkdirSync(join(space.base, 'hooks'))
    for (const hook of ['fsmonitor-watchman', 'post-index-change', 'post-checkout', 'reference-transaction']) {
      for (const at of [
        join(space.base, 'hooks', hook),
        space.at(`.git/hooks/${hook}`),
        space.at(`inner/.git/hooks/${hook}`),
      ]) {
        writeFileSync(at, `#!/bin/sh\necho ${hook} >> '${marker}'\n`)
        chmodSync(at, 0o755)
      }
    }
    for (const config of ['.git/config', 'inner/.git/config']) {
      for (const [key, value] of Object.entries(settings)) space.git('config', '-f', config, key, value)
    }
    space.write('a.txt', 'changed')
    // The trap is armed: git itself does run it.
    space.sh('git status >/dev/null 2>&1 || true')
    expect(existsSync(marker)).toBe(true)
    space.sh(`rm '${marker}'`)

    const savepoint = await space.open()
    const { id } = await savepoint.snapshot()
    expect((await savepoint.coverage('ignored')).covered).toBe(true)
    space.sh('rm -rf .git inner a.txt; echo no > ignored')
    await savepoint.rollback(id)
    await savepoint.undo()
    await savepoint.redo()
    await savepoint.status()
    const { changes, content } = await savepoint.diff({ from: id })
    for (const change of changes) content(change, 'before')
    await savepoint.rollback(id, { to: join(space.base, 'elsewhere') })
    expect(space.read('a.txt')).toBe('changed')
    expect(existsSync(marker)).toBe(false)
  })
})

describe('G3: a machine without git', () => {
  it('snapshots, rolls back and undoes as ever, with one warning', async () => {
    space.sh(`git init -q .; printf 'ignored\ntracked-too\n' > .gitignore; echo x > tracked-too; echo y > ignored; echo z > plain
      git add -f .gitignore tracked-too plain; git commit -qm one`)
    const env = { ...space.env, PATH: join(space.base, 'nothing here') }
    const savepoint = await space.open({ env })
    const before = imageOf(space.dir)
    const first = await savepoint.snapshot()
    expect(space.notices).toEqual([expect.stringContaining('git is not installed')])
    space.sh('rm -rf .git plain; echo new > new; echo still mine > ignored')
    await savepoint.rollback(first.id)
    const after = imageOf(space.dir)
    expect(differences(before, after).map(line => line.split(':')[0])).toEqual(['ignored'])
    await savepoint.undo()
    expect([space.read('plain'), space.read('new'), existsSync(space.at('.git'))]).toEqual([undefined, 'new\n', false])
    await savepoint.redo()
    expect(differences(after, imageOf(space.dir))).toEqual([])
    // Only what git alone can tell is different: this file is tracked although it is ignored.
    expect((await savepoint.coverage('tracked-too')).covered).toBe(false)
    const withGit = await space.open()
    expect((await withGit.coverage('tracked-too')).covered).toBe(true)
    expect((await withGit.coverage('ignored')).covered).toBe(false)
  })

  it('says so once in a workspace of many repositories', async () => {
    for (const name of ['a', 'b', 'c']) space.sh(`git init -q ${name}; echo x > ${name}/x; git -C ${name} add x`)
    const savepoint = await space.open({ env: { ...space.env, PATH: '/nonexistent' } })
    await savepoint.snapshot()
    await savepoint.snapshot()
    expect(space.notices.filter(text => text.includes('git'))).toHaveLength(1)
  })
})
