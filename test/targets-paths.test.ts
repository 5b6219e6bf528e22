/** Paths as people and programs write them, and targets whose own path is unusual. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { rawFromBytes, showPath } from '../src/model/raw-path.ts'
import { cliCommand } from './support/cli.ts'
import { differences, imageOf } from './support/tree-image.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
afterEach(() => space.remove())

describe('the path of the target', () => {
  for (const name of ['with spaces', 'new\nline', ' -leading', 'quo\'te"s', 'ünï ☃', 'a\\b', '*[x]?']) {
    it(`${JSON.stringify(name)}: snapshot, rollback, exclusions, run`, async () => {
      space = new Workspace(name)
      space.sh(
        'git init -q .; printf "*.o\n" > .gitignore; mkdir sub; echo 1 > sub/a; echo o > a.o; echo t > t.o; git add -f t.o',
      )
      const savepoint = await space.open()
      const { id } = await savepoint.snapshot()
      expect(savepoint.target).toBe(showPath(rawFromBytes(Buffer.from(space.dir))))
      const before = imageOf(space.dir)
      space.sh('rm -rf sub .git t.o')
      await savepoint.rollback(id)
      expect(differences(before, imageOf(space.dir))).toEqual([])
      expect((await savepoint.coverage('a.o')).covered).toBe(false)
      const result = await savepoint.run({ command: ['sh', '-c', 'pwd > where'] })
      expect(result.exitCode).toBe(0)
      expect(space.read('where')).toBe(`${space.dir}\n`)
      expect((await space.open({ cwd: space.at('sub') })).timeline).toBe(savepoint.timeline)
    })
  }

  it('bytes that are not UTF-8: the whole command line works there', () => {
    space = new Workspace()
    const dir = Buffer.concat([Buffer.from(`${space.base}/caf`), Buffer.from([0xe9, 0xff])])
    mkdirSync(dir)
    const at = (name: string) => Buffer.concat([dir, Buffer.from(`/${name}`)])
    writeFileSync(at('a'), 'one')
    writeFileSync(at('savepoint.yaml'), 'snapshots:\n  exclude:\n    additional: [left-out]\n')
    writeFileSync(at('left-out'), 'mine')
    // A shell enters the directory: node cannot name it as text.
    const script = `cd "$(printf '${space.base}/caf\\351\\377')"; exec "$@"`
    const cli = (...args: string[]) =>
      execFileSync('sh', ['-c', script, 'sh', ...cliCommand, ...args], {
        cwd: '/',
        env: space.env,
        stdio: 'pipe',
      }).toString()
    cli('snapshot', '--label', 'first')
    writeFileSync(at('a'), 'two')
    writeFileSync(at('left-out'), 'changed')
    cli('run', '--', 'sh', '-c', 'echo ran > made')
    expect(readFileSync(at('made'), 'utf8')).toBe('ran\n')
    cli('undo')
    expect([existsSync(at('made')), readFileSync(at('a'), 'utf8')]).toEqual([false, 'two'])
    cli('rollback', 'first')
    expect([readFileSync(at('a'), 'utf8'), readFileSync(at('left-out'), 'utf8')]).toEqual(['one', 'changed'])
    expect(JSON.parse(cli('status', '--json')).target).toBe(`${space.base}/caf\\xe9\\xff`)
  })
})

describe('a path as an argument', () => {
  beforeEach(() => {
    space = new Workspace()
    for (const path of ['a', 'sub/b', 'sub/deep/c', 'tab\there', 'back\\slash']) space.write(path, 'one')
    writeFileSync(Buffer.concat([Buffer.from(`${space.dir}/`), Buffer.from([0xff, 0xfe])]), 'one')
  })
  const change = (...paths: string[]) => {
    for (const path of paths) space.write(path, 'two')
  }

  it('is relative to cwd, absolute, or leads up and back', async () => {
    const { id } = await (await space.open()).snapshot()
    change('a', 'sub/b', 'sub/deep/c')
    const savepoint = await space.open({ cwd: space.at('sub') })
    await savepoint.rollback(id, { paths: ['deep/c'] })
    expect([space.read('a'), space.read('sub/b'), space.read('sub/deep/c')]).toEqual(['two', 'two', 'one'])
    await savepoint.rollback(id, { paths: ['../a'] })
    expect([space.read('a'), space.read('sub/b')]).toEqual(['one', 'two'])
    await savepoint.rollback(id, { paths: [space.at('sub/../sub/./b')] })
    expect(space.read('sub/b')).toBe('one')
    change('a', 'sub/b')
    await savepoint.rollback(id, { paths: ['.'] })
    expect([space.read('a'), space.read('sub/b')]).toEqual(['two', 'one'])
    await savepoint.rollback(id, { paths: ['..'] })
    expect(space.read('a')).toBe('one')
  })

  it('reaches the engine with the very bytes that the shell gave, and is hinted at in a form that can be pasted', () => {
    const name = Buffer.concat([Buffer.from(`${space.dir}/q`), Buffer.from([0xff])])
    writeFileSync(name, 'one')
    // What node makes of that name, and what we show of it, are names of other files.
    space.write('q\ufffd', 'other')
    space.write('q\\xff', 'other')
    const cli = (script: string) =>
      execFileSync('sh', ['-ec', `s() { ${cliCommand.map(word => `'${word}'`).join(' ')} "$@"; }; ${script}`], {
        cwd: space.dir,
        env: space.env,
        stdio: 'pipe',
      }).toString()
    cli('s snapshot -m first')
    writeFileSync(name, 'two')
    const coverage = cli(`s coverage "$(printf 'q\\377')"`)
    expect(coverage).toContain('q\\xff: protected')
    expect(coverage).toContain('another version than the one on disk')
    expect(cli(`s revert "$(printf 'q\\377')"`)).toContain('Reverted q\\xff to')
    expect(readFileSync(name, 'utf8')).toBe('one')
    rmSync(space.at('q\\xff'))
    const hint = /To bring one back: savepoint (.*) --from SNAPSHOT/.exec(cli(`s history "$(printf 'q\\377')"`))![1]
    expect(hint).toBe("revert 'q\\xff'")
    writeFileSync(name, 'two')
    cli(`s ${hint} --from first`)
    expect(readFileSync(name, 'utf8')).toBe('one')
    expect(cli(`s coverage "$(printf 'q\\357\\277\\275')"`)).toMatch(/^q\ufffd: protected/)
  })

  it('works from a cwd that is a symlink into the target, and through a symlink to the target', async () => {
    const { id } = await (await space.open()).snapshot()
    const [toTarget, toSub] = [join(space.base, 'link'), join(space.base, 'link to sub')]
    symlinkSync(space.dir, toTarget)
    symlinkSync(space.at('sub'), toSub)
    const savepoint = await space.open({ cwd: toSub, create: false })
    expect(savepoint).toMatchObject({ target: space.dir, subdirectory: 'sub' })
    expect((await space.open({ cwd: toTarget, create: false })).timeline).toBe(savepoint.timeline)
    expect((await space.open({ target: toTarget, create: false })).timeline).toBe(savepoint.timeline)
    for (const path of [join(toTarget, 'sub/b'), join(toSub, 'b'), 'b', '../sub/b']) {
      change('sub/b')
      await savepoint.rollback(id, { paths: [path] })
      expect([path, space.read('sub/b')]).toEqual([path, 'one'])
    }
  })

  it('is never followed out of the target', async () => {
    space.write('../outside/file', 'theirs')
    symlinkSync(join(space.base, 'outside'), space.at('way-out'))
    const savepoint = await space.open()
    const { id } = await savepoint.snapshot()
    const outside = { code: 'path.outside', exitCode: 2 }
    for (const path of ['..', '../outside/file', '/etc/passwd', 'sub/../../outside', '', 'a\0b', '/']) {
      await expect(savepoint.rollback(id, { paths: [path] }), JSON.stringify(path)).rejects.toMatchObject(outside)
      await expect(savepoint.revert(path), JSON.stringify(path)).rejects.toMatchObject(outside)
      await expect(savepoint.coverage(path), JSON.stringify(path)).rejects.toMatchObject(outside)
      await expect(savepoint.history(path), JSON.stringify(path)).rejects.toMatchObject(outside)
    }
    // A link is a thing in the target; what it points to is not.
    await expect(savepoint.revert('way-out/file')).rejects.toMatchObject({ code: 'path.unknown' })
    expect(() => savepoint.read(id, 'way-out/file')).toThrow()
    expect(readFileSync(join(space.base, 'outside/file'), 'utf8')).toBe('theirs')
  })

  it('may be in the escaped form that we print; a file of that very name wins', async () => {
    const savepoint = await space.open()
    const { id } = await savepoint.snapshot()
    space.sh(
      "printf two > \"$(printf '\\377\\376')\"; printf two > 'back\\slash'; printf two > \"$(printf 'tab\\there')\"",
    )
    const changed = (await savepoint.changes()).changes.map(change => showPath(change.path)).sort()
    expect(changed).toEqual(['\\xff\\xfe', 'back\\\\slash', 'tab\\there'])
    for (const path of changed) await savepoint.rollback(id, { paths: [path] })
    expect((await savepoint.changes()).changes).toEqual([])
    space.write('back\\slash', 'two')
    await savepoint.revert('back\\slash', { from: id })
    expect(space.read('back\\slash')).toBe('one')
  })

  it('that no snapshot knows is an error with a hint', async () => {
    const savepoint = await space.open()
    const { id } = await savepoint.snapshot()
    await expect(savepoint.rollback(id, { paths: ['typo'] })).rejects.toMatchObject({
      code: 'path.unknown',
      exitCode: 12,
    })
    await expect(savepoint.revert('typo')).rejects.toMatchObject({ hint: expect.stringContaining('history typo') })
    // Made after the snapshot: known to be absent in it, so it goes.
    space.write('made-later')
    await savepoint.revert('made-later', { from: id })
    expect(existsSync(space.at('made-later'))).toBe(false)
  })
})
