/** `bundle restore` and `bundle import`: what a recorded command did is taken back, or done again, and nobody else's work is lost. */
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { giveToUser, savepoint, savepointAsUser, savepointJson } from './support/built-cli.ts'
import { gated, hasXattrs } from './support/machine.ts'
import { recordScript } from './support/recorded.ts'
import { differences, imageOf } from './support/tree-image.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
})
afterEach(() => space.remove())

const bundle = (...args: string[]) => savepoint(space, ['bundle', ...args])
const at = (name: string) => join(space.base, name)

/** All kinds of changes at once. */
function makeTree(): string {
  space.write('edited', 'one\ntwo\n')
  space.write('deleted', 'deleted\n')
  space.write('dir/moved', 'moved\n')
  space.write('dir/sub/deep', 'deep\n')
  space.write('becomes-dir', 'was a file\n')
  space.write('was-dir/inside', 'inside\n')
  space.write('untouched', 'untouched\n')
  space.sh(
    'chmod 640 edited; touch -d "2001-02-03 04:05:06.789" edited; ln -s edited link; mkdir empty; chmod 4755 dir/moved; mkfifo fifo',
  )
  return `echo three >> edited; rm deleted fifo; mv dir elsewhere; rm becomes-dir; mkdir becomes-dir; echo x > becomes-dir/x
    rm -r was-dir; echo now a file > was-dir; ln -sf elsewhere link; rmdir empty; mkdir -p new/deep; echo made > new/deep/file; chmod 600 untouched; chmod 644 untouched`
}

describe('in place', () => {
  it('takes back everything that a command did, and that as well, as often as one likes', () => {
    const script = makeTree()
    const before = imageOf(space.dir)
    recordScript(space, script, { name: 'bundle' })
    const after = imageOf(space.dir)
    expect(differences(before, after).length).toBeGreaterThan(10)
    const back = bundle('restore', '--before', '--in-place', '--yes', at('bundle'))
    expect([back.status, back.stderr]).toEqual([0, ''])
    expect(back.stdout).toContain(
      `To undo: savepoint bundle restore --before --in-place '${at('bundle')}.undo'`.replaceAll("'", ''),
    )
    expect(differences(before, imageOf(space.dir))).toEqual([])
    expect(bundle('restore', '--before', '--in-place', '--yes', at('bundle.undo')).status).toBe(0)
    expect(differences(after, imageOf(space.dir))).toEqual([])
    expect(bundle('restore', '--before', '--in-place', '--yes', at('bundle')).status).toBe(0)
    expect(bundle('restore', '--in-place', '--yes', at('bundle')).status).toBe(0)
    expect(differences(after, imageOf(space.dir))).toEqual([])
    const again = bundle('restore', '--in-place', '--yes', at('bundle'))
    expect([again.status, again.stdout]).toEqual([0, expect.stringContaining('Nothing to do')])
  })

  it('leaves alone what was edited since, and what others put into a directory that goes', () => {
    space.write('a', 'before\n')
    space.write('b', 'before\n')
    recordScript(space, 'echo after > a; echo after > b; mkdir made; echo x > made/x', { name: 'bundle' })
    space.write('a', 'edited by hand\n')
    space.write('made/mine', 'mine\n')
    const result = savepointJson(space, ['bundle', 'restore', '--before', '--in-place', '--yes', at('bundle')])
    expect(result.left_alone).toEqual([{ path: space.at('a'), why: 'edited' }])
    expect([space.read('a'), space.read('b'), space.read('made/mine'), space.read('made/x')]).toEqual([
      'edited by hand\n',
      'before\n',
      'mine\n',
      undefined,
    ])
    const forced = bundle('restore', '--before', '--in-place', '--yes', '--force', at('bundle'))
    expect([forced.status, space.read('a'), space.read('made/mine')]).toEqual([0, 'before\n', 'mine\n'])
    expect(bundle('restore', '--before', '--in-place', '--yes', at('bundle.undo2')).status).toBe(0)
    expect(space.read('a')).toBe('edited by hand\n')
  })

  it('names a socket that the command made, which it does not delete', () => {
    const made = recordScript(space, `echo new > file; python3 -c 'import socket; socket.socket(1).bind("socket")'`)
    const back = savepoint(space, ['bundle', 'restore', '--before', '--in-place', '--yes', made.directory])
    expect([back.status, back.stdout]).toEqual([
      3,
      expect.stringContaining(`a socket or a device):\n  ${space.dir}/socket\n`),
    ])
    expect(readdirSync(space.dir)).toEqual(['socket'])
  })

  it('asks, and does nothing where nobody can be asked; --dry-run shows what it would do', () => {
    space.write('a', 'before\n')
    recordScript(space, 'echo after > a', { name: 'bundle' })
    const refused = bundle('restore', '--before', '--in-place', at('bundle'))
    expect([refused.status, refused.stderr]).toEqual([2, expect.stringContaining('nobody can be asked')])
    expect(bundle('restore', '--before', at('bundle')).status).toBe(2)
    const dry = bundle('restore', '--before', '--in-place', '--dry-run', at('bundle'))
    expect([dry.status, dry.stdout]).toEqual([0, expect.stringContaining(`M ${space.at('a')}`)])
    expect([space.read('a'), existsSync(at('bundle.undo'))]).toEqual(['after\n', false])
  })

  it('stays below the directory that the command started in, unless --anywhere is said', () => {
    mkdirSync(at('outside'))
    writeFileSync(join(at('outside'), 'file'), 'before\n')
    space.write('inside', 'before\n')
    recordScript(space, 'echo after > inside; echo after > ../outside/file; echo made > ../outside/made', {
      name: 'bundle',
    })
    const near = bundle('restore', '--before', '--in-place', '--yes', at('bundle'))
    expect(near.stdout).toContain('2 paths not below')
    const outside = () => readFileSync(join(at('outside'), 'file'), 'utf8')
    expect([space.read('inside'), outside()]).toEqual(['before\n', 'after\n'])
    const far = bundle('restore', '--before', '--in-place', '--yes', '--anywhere', at('bundle'))
    expect(far.status).toBe(0)
    expect([outside(), existsSync(join(at('outside'), 'made'))]).toEqual(['before\n', false])
    // What it prints takes it back as it stands.
    const undo = /To undo: savepoint bundle (.*)/.exec(far.stdout)?.[1]?.split(' ') ?? []
    expect(bundle(...undo, '--yes').status).toBe(0)
    expect([outside(), existsSync(join(at('outside'), 'made'))]).toEqual(['after\n', true])
  })

  it('never writes through a link that somebody has put in the way', () => {
    space.write('dir/sub/file', 'before\n')
    recordScript(space, 'echo after > dir/sub/file', { name: 'bundle' })
    space.sh('mv dir ../real; ln -s ../real dir')
    const result = savepointJson(space, ['bundle', 'restore', '--before', '--in-place', '--yes', at('bundle')])
    expect(result.left_alone).toEqual([{ path: space.at('dir'), why: 'in-the-way' }])
    expect(readFileSync(join(at('real'), 'sub/file'), 'utf8')).toBe('after\n')
    expect(lstatSync(space.at('dir')).isSymbolicLink()).toBe(true)
    const { stdout } = bundle('restore', '--before', '--in-place', '--yes', at('bundle'))
    expect(stdout).toMatch(/^Nothing was changed\nLeft alone/)
  })

  it('says when the directory that the command started in is reached by a link now', () => {
    recordScript(space, 'echo made > made', { name: 'bundle' })
    const restore = () => bundle('restore', '--before', '--in-place', '--yes', at('bundle')).stderr
    space.sh('mv ../work ../real; ln -s real ../work')
    expect(restore()).toContain(`${space.dir} is no directory any more, or reached by a link`)
  })

  it('brings back a directory that the command has moved and put a link in the place of', () => {
    space.write('real/sub/file', 'inside\n')
    const before = imageOf(space.dir)
    recordScript(space, 'mv real other; ln -s other real', { name: 'bundle' })
    const after = imageOf(space.dir)
    expect(bundle('restore', '--before', '--in-place', '--yes', at('bundle')).status).toBe(0)
    expect(differences(before, imageOf(space.dir))).toEqual([])
    expect(bundle('restore', '--before', '--in-place', '--yes', at('bundle.undo')).status).toBe(0)
    expect(differences(after, imageOf(space.dir))).toEqual([])
  })

  gated(hasXattrs, 'xattrs', 'leaves extended attributes as they are', () => {
    space.write('dir/edited', 'before\n')
    space.sh(`python3 -c 'import os; [os.setxattr(name, "user.mine", b"kept") for name in ["dir", "dir/edited"]]'`)
    recordScript(space, 'echo after >> dir/edited; chmod 700 dir', { name: 'bundle' })
    expect(bundle('restore', '--before', '--in-place', '--yes', at('bundle')).status).toBe(0)
    expect(space.read('dir/edited')).toBe('before\n')
    const xattrs = space.sh(
      `python3 -c 'import os; print([os.getxattr(x, "user.mine") for x in ["dir", "dir/edited"]])'`,
    )
    expect(xattrs).toBe("[b'kept', b'kept']\n")
  })

  it('works for an ordinary user', () => {
    const script = makeTree()
    giveToUser(space)
    const before = imageOf(space.dir)
    expect(savepointAsUser(space, ['record', '-o', at('bundle'), '--', 'sh', '-ec', script]).status).toBe(0)
    const back = savepointAsUser(space, ['bundle', 'restore', '--before', '--in-place', '--yes', at('bundle')])
    expect([back.status, back.stderr]).toEqual([0, ''])
    expect(differences(before, imageOf(space.dir))).toEqual([])
  })
})

describe('that is killed', () => {
  const restore = (...args: string[]) => bundle('restore', '--before', '--in-place', '--yes', ...args)
  const left = () => readdirSync(space.dir).filter(name => name.startsWith('.savepoint-stage'))

  it.each(['restore:staged', 'restore:displaced#2', 'restore:place#4', 'restore:placed'])(
    'at %s is finished by the same command, or taken back by the undo bundle',
    point => {
      const script = makeTree()
      const before = imageOf(space.dir)
      recordScript(space, script, { name: 'bundle' })
      const after = imageOf(space.dir)
      const kill = () => {
        const env = { ...space.env, SAVEPOINT_FAILPOINT: point }
        const args = ['bundle', 'restore', '--before', '--in-place', '--yes', at('bundle')]
        expect([savepoint(space, args, { env }).signal, left().length]).toEqual(['SIGKILL', 1])
      }
      kill()
      expect([restore(at('bundle')).status, left()]).toEqual([0, []])
      expect(differences(before, imageOf(space.dir))).toEqual([])
      expect(bundle('restore', '--in-place', '--yes', at('bundle')).status).toBe(0)
      expect(differences(after, imageOf(space.dir))).toEqual([])
      space.sh('rm -r ../bundle.undo*')
      kill()
      expect([restore('--force', at('bundle.undo')).status, left()]).toEqual([0, []])
      expect(differences(after, imageOf(space.dir))).toEqual([])
      expect(readdirSync(join(space.home, 'restores'))).toEqual([])
    },
  )

  it('is told of, and what is nowhere else stays in its stage', () => {
    space.write('a', 'before\n')
    recordScript(space, 'echo after > a', { name: 'bundle' })
    const env = { ...space.env, SAVEPOINT_FAILPOINT: 'restore:placed' }
    savepoint(space, ['bundle', 'restore', '--before', '--in-place', '--yes', at('bundle')], { env })
    space.sh('find .savepoint-stage-* -type f -size +0 | while read file; do echo edited meanwhile > "$file"; done')
    recordScript(space, 'echo other > b', { name: 'other' })
    const other = restore(at('other'))
    expect([other.status, other.stderr]).toEqual([3, expect.stringContaining(`a restore of ${at('bundle')}`)])
    expect(other.stdout).toContain(`${space.dir}/.savepoint-stage-`)
    expect(space.sh('cat .savepoint-stage-*/*')).toContain('edited meanwhile')
  })
})

it('sees what the command did in directories that it has shut behind it, and takes it back', () => {
  space.write('dir/file', 'before\n')
  space.write('moved/inside/file', 'inside\n')
  giveToUser(space)
  const before = imageOf(space.dir)
  const script = 'echo after > dir/file; echo made > dir/made; chmod 0 dir; mv moved away; chmod 0 away/inside away'
  const recorded = savepointAsUser(space, ['record', '-o', at('bundle'), '--', 'sh', '-c', script])
  expect([recorded.status, recorded.stderr]).toEqual([0, expect.not.stringContaining('INCOMPLETE')])
  const after = imageOf(space.dir)
  expect(after.get('dir')).toMatch(/^dir 0 /)
  const restore = (name: string) =>
    savepointAsUser(space, ['bundle', 'restore', '--before', '--in-place', '--yes', at(name)])
  expect(restore('bundle')).toMatchObject({ status: 0, stderr: '' })
  expect(differences(before, imageOf(space.dir))).toEqual([])
  expect(restore('bundle.undo')).toMatchObject({ status: 0, stderr: '' })
  expect(differences(after, imageOf(space.dir))).toEqual([])
})

it('its user gets back what the command made in a directory before it shut that', () => {
  space.sh('mkdir -p dir/kept; echo kept > dir/kept/file')
  giveToUser(space)
  const before = imageOf(space.dir)
  const script = 'mkdir dir/new; echo new > dir/new/file; echo other > dir/kept/file; chmod 644 dir'
  expect(savepointAsUser(space, ['record', '-o', at('bundle'), '--', 'sh', '-ec', script]).status).toBe(0)
  const after = imageOf(space.dir)
  const restore = (side: string) =>
    savepointAsUser(space, ['bundle', 'restore', side, '--in-place', '--yes', at('bundle')])
  expect(restore('--before')).toMatchObject({ status: 0, stderr: '' })
  expect(differences(before, imageOf(space.dir))).toEqual([])
  expect(restore('--after')).toMatchObject({ status: 0, stderr: '' })
  expect(differences(after, imageOf(space.dir))).toEqual([])
})

it('does not fill the holes of large files', () => {
  const make = (name: string, size: number) =>
    `python3 -c "f = open('${name}', 'wb'); f.truncate(${size}); f.seek(${size} // 3); f.write(b'data' * 25_000)"`
  space.sh(make('disk', 30_000_001))
  const before = imageOf(space.dir)
  const { directory } = recordScript(space, `rm disk; ${make('image', 20_000_000)}`)
  const after = imageOf(space.dir)
  for (const [side, image, name] of [
    ['--before', before, 'disk'],
    ['--after', after, 'image'],
  ] as const) {
    expect(bundle('restore', side, '--in-place', '--yes', directory).status).toBe(0)
    expect(differences(image, imageOf(space.dir))).toEqual([])
    expect(lstatSync(space.at(name)).blocks * 512).toBeLessThan(1_000_000)
  }
})

describe('--to', () => {
  it('never writes into Savepoint’s own home', () => {
    recordScript(space, 'echo made > made', { name: 'bundle' })
    symlinkSync(space.home, at('link'))
    for (const place of [join(space.home, 'here'), at('link/deep/here')]) {
      const refused = bundle('restore', '--to', place, at('bundle'))
      expect([refused.status, refused.stderr]).toEqual([2, expect.stringContaining('it belongs to Savepoint itself')])
    }
  })

  it('writes what was read and written under its path, and from git what only git has', () => {
    space.git('init', '-q')
    space.write('clean', 'in git\n')
    space.git('add', '-A')
    space.git('commit', '-qm', 'all')
    space.write('own', 'not in git\n')
    recordScript(space, 'cat clean own > made; chmod 755 made; ln -s made link', { name: 'bundle' })
    const there = (name: string) => join(at('copy'), space.at(name))
    const plain = savepointJson(space, ['bundle', 'restore', '--to', at('copy'), at('bundle')])
    // Each path that came, whatever is above it.
    for (const { action, path } of plain.changes)
      expect([action, existsSync(`${at('copy')}${path}`)]).toEqual(['create', true])
    expect(plain.changes.length).toBeGreaterThan(1)
    expect(plain.left_alone).toEqual([{ path: space.at('clean'), why: 'only-in-git' }])
    expect(readFileSync(there('made'), 'utf8')).toBe('in git\nnot in git\n')
    expect(lstatSync(there('made')).mode & 0o777).toBe(0o755)
    expect(readFileSync(there('link'), 'utf8')).toBe('in git\nnot in git\n')
    expect(existsSync(there('clean'))).toBe(false)
    expect(bundle('restore', '--to', at('copy'), at('bundle')).stderr).toContain('not empty')
    expect(bundle('restore', '--to', at('copy2'), '--with-git', at('bundle')).status).toBe(0)
    expect(readFileSync(join(at('copy2'), space.at('clean')), 'utf8')).toBe('in git\n')
    expect(bundle('restore', '--before', '--to', at('copy3'), at('bundle')).status).toBe(0)
    expect(existsSync(join(at('copy3'), space.at('made')))).toBe(false)
    expect(readFileSync(join(at('copy3'), space.at('own')), 'utf8')).toBe('not in git\n')
  })
})

describe('a bundle from a stranger', () => {
  const change = (from: string, to: string) => {
    const file = join(at('bundle'), 'manifest.json')
    const text = readFileSync(file, 'utf8')
    expect(text).toContain(from)
    writeFileSync(file, text.replaceAll(from, to))
  }

  it('cannot write outside by its paths, nor say one path and mean another', () => {
    space.write('file', 'before\n')
    recordScript(space, 'echo after > file', { name: 'bundle' })
    const original = readFileSync(join(at('bundle'), 'manifest.json'))
    for (const path of [
      `${space.dir}/../file`,
      `${space.dir}//file`,
      `${space.dir}/./file`,
      'file',
      `${space.dir}/file/`,
      `${space.dir}/a\\u0000b`,
      `${space.dir}/.git/hooks/post-checkout`,
      `${space.dir}/.git`,
    ]) {
      writeFileSync(join(at('bundle'), 'manifest.json'), original)
      change(`"path":"${space.at('file')}"`, `"path":"${path}"`)
      expect([path, bundle('show', at('bundle')).status]).toEqual([path, 14])
      expect([path, bundle('restore', '--before', '--in-place', '--yes', at('bundle')).status]).toEqual([path, 14])
    }
    writeFileSync(join(at('bundle'), 'manifest.json'), original)
    const other = Buffer.from(`${space.dir}/other`).toString('base64')
    change(`"path":"${space.at('file')}"`, `"path":"${space.at('file')}","path_bytes":"${other}"`)
    expect(bundle('verify', at('bundle')).stderr).toContain('its bytes are of another one')
    expect(space.read('file')).toBe('after\n')
  })

  it('is refused before anything is changed when a content is not what its hash says', () => {
    space.write('file', 'before\n')
    space.write('file2', 'before 2\n')
    recordScript(space, 'echo after > file; echo after > file2', { name: 'bundle' })
    change(
      savepointJson(space, ['bundle', 'show', at('bundle')]).files.find(
        (file: { path: string }) => file.path === space.at('file2'),
      ).before.sha256,
      'a'.repeat(64),
    )
    const result = bundle('restore', '--before', '--in-place', '--yes', at('bundle'))
    expect([result.status, result.stderr]).toEqual([14, expect.stringContaining('is not what its hash says')])
    expect([space.read('file'), space.read('file2')]).toEqual(['after\n', 'after\n'])
    const verified = bundle('verify', at('bundle'))
    expect([verified.status, verified.stdout]).toEqual([14, expect.stringContaining('is not what its hash says')])
  })

  it('cannot smuggle a link under what it writes', () => {
    space.write('dir/file', 'before\n')
    recordScript(space, 'echo after > dir/file; mkdir x; echo y > x/y', { name: 'bundle' })
    symlinkSync('/', space.at('x2'))
    // A directory that becomes a link, with something below it.
    const file = join(at('bundle'), 'manifest.json')
    const manifest = JSON.parse(readFileSync(file, 'utf8'))
    const x = manifest.files.find((each: { path: string }) => each.path === space.at('x'))
    Object.assign(x.after, { type: 'symlink', target: space.base })
    writeFileSync(file, JSON.stringify(manifest))
    space.sh('rm -r x')
    bundle('restore', '--in-place', '--yes', '--force', at('bundle'))
    expect(existsSync(at('y'))).toBe(false)
  })
})

describe('import', () => {
  it('makes two snapshots of it, which differ by what the command did', () => {
    const script = makeTree()
    const before = imageOf(space.dir)
    space.write('later', 'nobody touched this\n')
    recordScript(space, script, { name: 'bundle' })
    space.write('edited', 'something else by now\n')
    expect(savepoint(space, ['snapshot', '-m', 'now']).status).toBe(0)
    const imported = savepointJson(space, ['bundle', 'import', at('bundle')])
    const changed = savepointJson(space, ['diff', imported.before, imported.after]).changes.map(
      (change: { path: string }) => change.path,
    )
    expect(changed).toEqual(expect.arrayContaining(['edited', 'deleted', 'new/deep/file', 'link']))
    expect(space.read('edited')).toBe('something else by now\n')
    expect(savepoint(space, ['rollback', imported.before]).status).toBe(0)
    space.sh('rm later')
    expect(differences(before, imageOf(space.dir))).toEqual([])
  })

  it('says when nothing of it lies in the target', () => {
    recordScript(space, 'echo x > x', { name: 'bundle' })
    mkdirSync(at('other'))
    const result = savepoint(space, ['bundle', 'import', '-t', at('other'), at('bundle')])
    expect([result.status, result.stderr]).toEqual([2, expect.stringContaining('nothing in it lies in the target')])
  })
})
