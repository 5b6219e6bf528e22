/** Arguments other than paths of the target that are not UTF-8, and what chooses the store. */
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { cliCommand, runCli } from './support/cli.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
afterEach(() => space.remove())

describe('bytes that are not UTF-8 in other arguments', () => {
  const start = `x=$(printf '\\377'); y=$(printf '\\376'); s() { env odd.name=kept ${cliCommand.map(word => `'${word}'`).join(' ')} "$@"; }`
  const cli = (script: string) =>
    execFileSync('sh', ['-ec', `${start}; ${script}`], {
      cwd: space.dir,
      env: space.env,
      stdio: 'pipe',
    })
  const there = () => readdirSync(space.base, 'latin1').sort()
  beforeEach(() => {
    space = new Workspace()
    space.write('a', 'one')
  })

  it('a command gets every byte as it was given, and the environment as it is', () => {
    const bytes = Buffer.from(Array.from({ length: 255 }, (_, i) => i + 1))
    writeFileSync(space.at('bytes'), bytes)
    const script = `s run -q -- sh -c 'printf %s "$1" > got; printf %s "$2" >> got; env > env' sh "$(cat bytes)" "it's"`
    cli(script)
    expect(readFileSync(space.at('got')).equals(Buffer.concat([bytes, Buffer.from("it's")]))).toBe(true)
    cli(`s run -q -- env "$x=1" > env`)
    expect(readFileSync(space.at('env'), 'latin1')).toContain('odd.name=kept\n')
    cli(`cp /bin/true "./t$x"; s run -q -- "./t$x"`)
    expect(() => cli(`s run -q -- "no-such$x"`)).toThrow(/command not found/)
  })

  it('-t and --to mean the very directory', () => {
    cli(`mkdir "../d$x"; echo hi > "../d$x/b"; s snapshot -q -m first -t "../d$x"`)
    cli(`s rollback first -t "../d$x" --to "../to$y"`)
    expect(there()).toEqual(['d\xff', 'store home', 'to\xfe', 'user', 'work'])
    cli(`cmp "../to$y/b" "../d$x/b"; cd "../d$x"; mkdir sub; s snapshot -q -t sub; s export first "../x$x.tar"`)
    expect(there()).toContain('x\xff.tar')
  })

  it('a hint can be pasted', () => {
    const refused = `s status -t "../d$x 100%" 2>&1 || true`
    const [, hint] = /Protect it with `savepoint (.*) snapshot`/.exec(
      cli(`mkdir "../d$x 100%"; ${refused}`).toString(),
    )!
    cli(`s ${hint} snapshot`)
    expect(cli(refused).toString()).toContain('d\\xff 100% is protected')
  })

  it('the store is refused there, because its files are named as text', () => {
    const before = there()
    for (const script of [`s status --home "../h$x"`, `SAVEPOINT_HOME="$PWD/h$x" s snapshot`])
      expect(() => cli(script)).toThrow(/for the store: its path is not UTF-8/)
    expect([there(), space.sh('ls')]).toEqual([before, 'a\n'])
  })
})

describe('where the store is', () => {
  beforeEach(() => {
    space = new Workspace()
    space.write('a', 'one')
  })

  it('SAVEPOINT_HOME must be absolute, because a relative one is another store in each directory', () => {
    const { status, stderr } = runCli(space, ['snapshot'], { env: { ...space.env, SAVEPOINT_HOME: 'store' } })
    expect(status).toBe(2)
    expect(stderr).toContain('Cannot use SAVEPOINT_HOME=store: it is relative')
    expect(stderr).toContain('hint: Make it absolute: export SAVEPOINT_HOME="$PWD/store"')
    expect(space.sh('ls')).toBe('a\n')
  })

  it('HOME must be absolute for the same reason; an empty one is not the current directory', () => {
    const { SAVEPOINT_HOME: _, ...env } = space.env
    const relative = runCli(space, ['snapshot'], { env: { ...env, HOME: 'rel' } })
    expect([relative.status, relative.stderr]).toEqual([
      2,
      expect.stringContaining('Cannot use HOME=rel: it is relative'),
    ])
    expect(runCli(space, ['status'], { env: { ...env, HOME: '' } }).status).toBe(10)
    expect(readdirSync(space.dir)).not.toContain('.savepoint')
    expect(readdirSync(space.dir)).not.toContain('rel')
  })

  it('a question makes no home', () => {
    expect(runCli(space, ['status']).status).toBe(10)
    expect(runCli(space, ['coverage', '.']).status).toBe(0)
    expect(readdirSync(space.base)).not.toContain(basename(space.home))
  })

  it('an empty SAVEPOINT_HOME counts as none; an empty --home does not', () => {
    const env = { ...space.env, SAVEPOINT_HOME: '', HOME: `${space.base}/user` }
    expect(runCli(space, ['snapshot'], { env }).status).toBe(0)
    expect(existsSync(`${space.base}/user/.savepoint/store`)).toBe(true)
    expect(runCli(space, ['snapshot', '--home', '']).stderr).toContain('Cannot use an empty --home')
    expect(space.sh('ls')).toBe('a\n')
  })

  it('--home may be relative, and wins', () => {
    const env = { ...space.env, SAVEPOINT_HOME: 'store' }
    expect(runCli(space, ['snapshot', '--home', '../other'], { env }).status).toBe(0)
    expect(existsSync(`${space.base}/other/store`)).toBe(true)
  })
})
