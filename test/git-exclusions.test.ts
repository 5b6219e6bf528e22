/** What is captured and what is not, as the engine decides it: the rules of git, our own, and how they go together. */
import { mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Savepoint } from '../src/index.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
})
afterEach(() => space.remove())

/** Of these paths, the ones that a snapshot holds: found by deleting them all and rolling back. */
async function comeBack(savepoint: Savepoint, paths: string[]): Promise<string[]> {
  const { id } = await savepoint.snapshot()
  for (const path of paths) rmSync(space.at(path))
  await savepoint.rollback(id)
  return paths.filter(path => space.read(path) !== undefined)
}

describe('the rules of git', () => {
  it('nested .gitignore, negation, directories, anchors, info/exclude', async () => {
    space.git('init', '-q', '.')
    space.write('.gitignore', '*.log\n!keep.log\nbuild/\n/top\n')
    space.write('sub/.gitignore', '!special.log\n*.tmp\n')
    space.write('.git/info/exclude', 'private\n')
    const captured = ['keep.log', 'sub/special.log', 'sub/keep.log', 'a.tmp', 'sub/top', 'builds/x', 'sub/x']
    const excluded = ['a.log', 'sub/a.log', 'build/x', 'sub/build/x', 'top', 'sub/a.tmp', 'private', 'sub/private']
    for (const path of [...captured, ...excluded]) space.write(path)
    expect(await comeBack(await space.open(), [...excluded, ...captured])).toEqual(captured)
  })

  it("the user's global excludes: ~/.config/git/ignore, and core.excludesFile instead of it", async () => {
    space.git('init', '-q', '.')
    mkdirSync(join(space.userHome, '.config/git'), { recursive: true })
    writeFileSync(join(space.userHome, '.config/git/ignore'), '*.swp\n')
    for (const path of ['a.swp', 'a.bak', 'a']) space.write(path)
    expect(await comeBack(await space.open(), ['a.swp', 'a.bak', 'a'])).toEqual(['a.bak', 'a'])
    writeFileSync(join(space.userHome, 'excludes'), '*.bak\n')
    writeFileSync(join(space.userHome, '.gitconfig'), '[core]\n\texcludesFile = ~/excludes\n')
    for (const path of ['a.swp', 'a.bak', 'a']) space.write(path)
    expect(await comeBack(await space.open(), ['a.swp', 'a.bak', 'a'])).toEqual(['a.swp', 'a'])
  })

  it('a file that is tracked is captured whatever the rules say, also after the index or the rules change', async () => {
    space.sh(`git init -q .; printf '*.gen\nvendor/\n' > .gitignore; mkdir -p vendor/lib; echo 1 > a.gen; echo 1 > b.gen
      echo 1 > vendor/lib/in; echo 1 > vendor/lib/out; git add -f a.gen vendor/lib/in`)
    const savepoint = await space.open()
    const all = ['a.gen', 'b.gen', 'vendor/lib/in', 'vendor/lib/out']
    const rewrite = () => {
      for (const path of all) space.write(path)
    }
    rewrite()
    expect(await comeBack(savepoint, all)).toEqual(['a.gen', 'vendor/lib/in'])
    rewrite()
    space.git('add', '-f', 'b.gen')
    expect(await comeBack(savepoint, all)).toEqual(['a.gen', 'b.gen', 'vendor/lib/in'])
    rewrite()
    space.git('rm', '-q', '-f', '--cached', 'a.gen')
    expect(await comeBack(savepoint, all)).toEqual(['b.gen', 'vendor/lib/in'])
    rewrite()
    space.write('.gitignore', '')
    expect(await comeBack(savepoint, all)).toEqual(all)
  })

  it('a file that is tracked later is captured, too, where only an ignore file beside it excludes it', async () => {
    space.sh("git init -q .; mkdir -p out/gen; echo '*' > out/gen/.gitignore; echo 1 > out/gen/a; echo 1 > out/gen/b")
    space.git('add', '-f', 'out/gen/a')
    const savepoint = await space.open()
    // What changed in the tick of a capture is read again by the next one, whatever the rules: until that is over.
    while (Date.now() - statSync(space.at('out/gen/b')).ctimeMs < 200) await savepoint.snapshot()
    await savepoint.snapshot()
    space.git('add', '-f', 'out/gen/b')
    expect(await comeBack(savepoint, ['out/gen/a', 'out/gen/b'])).toEqual(['out/gen/a', 'out/gen/b'])
    expect(await savepoint.coverage('out/gen/b')).toMatchObject({ covered: true })
  })

  it('.git itself is captured although a rule names it', async () => {
    space.sh("git init -q .; printf '.git\n.git/\n*\n' > .gitignore; echo x > x")
    const savepoint = await space.open()
    const { id } = await savepoint.snapshot()
    space.sh('rm -rf .git')
    await savepoint.rollback(id)
    expect(space.git('rev-parse', '--git-dir')).toBe('.git\n')
  })

  it('an ignore file that cannot be read: its rules do not apply', async () => {
    space.sh('git init -q .; mkdir -p sub/.gitignore; ln -s nowhere .gitignore; echo a > a; echo b > sub/b')
    const savepoint = await space.open()
    expect(await comeBack(savepoint, ['a', 'sub/b'])).toEqual(['a', 'sub/b'])
  })
})

describe('our own rules', () => {
  it('.env and .env.* are kept although git ignores them; not when our own rules exclude them', async () => {
    space.sh('git init -q .; printf ".env*\nignored\n" > .gitignore')
    for (const path of ['.env', '.env.local', 'app/.env', 'ignored', 'ignored-dir/.env']) space.write(path)
    space.write('.savepointignore', 'ignored-dir/\n')
    const all = ['.env', '.env.local', 'app/.env', 'ignored', 'ignored-dir/.env']
    expect(await comeBack(await space.open(), all)).toEqual(['.env', '.env.local', 'app/.env'])
  })

  it('.savepointignore, nested, wins over tracking and keep, without any repository, too', async () => {
    space.write('.savepointignore', '*.iso\n.env\n!wanted.iso\n')
    space.write('sub/.savepointignore', 'cache/\n')
    const all = ['a.iso', 'wanted.iso', '.env', 'sub/cache/x', 'cache/x', 'sub/a']
    for (const path of all) space.write(path)
    const captured = ['wanted.iso', 'cache/x', 'sub/a']
    expect(await comeBack(await space.open(), all)).toEqual(captured)
    space.sh('git init -q .')
    for (const path of all) space.write(path)
    space.git('add', '-f', ...all)
    expect(await comeBack(await space.open(), all)).toEqual(captured)
  })

  it('exclude.additional, exclude.keep and ignore_gitignore of the configuration', async () => {
    space.sh("git init -q .; printf 'out/\n*.key\n' > .gitignore")
    const all = ['out/x', 'secret.key', 'huge/x', 'src/x']
    const rewrite = () => {
      for (const path of all) space.write(path)
    }
    rewrite()
    expect(await comeBack(await space.open(), all)).toEqual(['huge/x', 'src/x'])
    space.write('savepoint.yaml', 'snapshots:\n  exclude:\n    additional: ["/huge"]\n    keep: ["*.key"]\n')
    rewrite()
    expect(await comeBack(await space.open(), all)).toEqual(['secret.key', 'src/x'])
    space.write('savepoint.yaml', 'snapshots:\n  exclude:\n    ignore_gitignore: true\n    additional: ["/huge"]\n')
    rewrite()
    expect(await comeBack(await space.open(), all)).toEqual(['out/x', 'secret.key', 'src/x'])
  })

  it('coverage names the rule that decides', async () => {
    space.sh("git init -q .; mkdir -p sub; printf '\n*.o\n' > sub/.gitignore; echo 'dist' > .git/info/exclude")
    for (const path of ['sub/a.o', 'dist/x', 'big', 'src']) space.write(path)
    space.write('savepoint.yaml', 'snapshots:\n  exclude:\n    additional: [big]\n')
    const savepoint = await space.open()
    const ruleFor = async (path: string) => (await savepoint.coverage(path)).rule
    expect(await ruleFor('sub/a.o')).toBe('sub/.gitignore:2 *.o')
    expect(await ruleFor('dist')).toBe('.git/info/exclude:1 dist')
    expect(await ruleFor('big')).toContain('big')
    expect(await savepoint.coverage('src')).toMatchObject({ covered: true, rule: undefined, exists: true })
    expect(await savepoint.coverage('nothing')).toMatchObject({ covered: false, exists: false, reason: 'absent' })
    expect(await savepoint.coverage('dist/x')).toMatchObject({ covered: false, exists: true, reason: 'excluded' })
  })
})
