/** Access lists and extended attributes are in no bundle: what is there keeps its own, and what comes back gives nobody more than before. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { Bundle } from '../src/record/index.ts'
import { giveToUser, savepoint, savepointAsUser, savepointJson } from './support/built-cli.ts'
import { gated, hasXattrs, isRoot } from './support/machine.ts'
import { recordScript } from './support/recorded.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
})
afterEach(() => space.remove())

const at = (name: string) => join(space.base, name)
const restore = (side: string, ...rest: string[]) =>
  savepoint(space, ['bundle', 'restore', side, ...(rest.length > 0 ? rest : ['--in-place', '--yes']), at('bundle')])
const modeOf = (path: string) => space.sh(`stat -c %a ${path}`).trim()
const listOf = (path: string) => space.sh(`getfacl -cn ${path} 2>&1`).trim().split('\n')
const stateOf = (path: string) => new Bundle(at('bundle')).files.find(each => each.path === space.at(path))!

describe('an access list', () => {
  const acl = gated.bind(undefined, hasXattrs, 'acl')
  const secret = 'echo secret > f; chmod 600 f; setfacl -m u:1234:rw f'

  acl('of a file that was deleted: its group gets no rights by the mask', () => {
    space.sh(secret)
    recordScript(space, 'rm f', { name: 'bundle' })
    expect(stateOf('f').before).toMatchObject({ mode: 0o660, group_mode: 0 })
    expect(restore('--before').status).toBe(0)
    expect([modeOf('f'), listOf('f')]).toEqual(['600', ['user::rw-', 'group::---', 'other::---']])
    expect(restore('--before').stdout).toContain('Nothing to do')
  })

  acl('that the command took away', () => {
    space.sh(`${secret}; mkdir d; chmod 750 d; setfacl -m g:1234:rwx d`)
    recordScript(space, 'setfacl -b f d; chmod 640 f; chmod 755 d; rm -f none', { name: 'bundle' })
    expect(restore('--before').status).toBe(0)
    expect([modeOf('f'), modeOf('d')]).toEqual(['600', '750'])
  })

  acl('that the command took away, and gave its rights to the group: the mode alone does not tell', () => {
    space.sh(secret)
    recordScript(space, 'setfacl -b f; chmod 660 f', { name: 'bundle' })
    expect(stateOf('f').after).toMatchObject({ mode: 0o660 })
    expect(savepoint(space, ['bundle', 'diff', at('bundle')]).stdout).toContain('old mode 100600\nnew mode 100660')
    expect(restore('--before').stdout).toContain('1 with other attributes')
    expect(modeOf('f')).toBe('600')
    expect(restore('--after').status).toBe(0)
    expect(modeOf('f')).toBe('660')
  })

  acl('in which the group has more or less since: it gets what it had, and what it has by the undo', () => {
    space.sh(`${secret}; echo other > g; setfacl -m u:1234:rw,g::rwx,m::r g; echo h > h; setfacl -m u:1234:rw,g::r h`)
    const lists = () => [listOf('f'), listOf('g'), listOf('h')]
    const before = lists()
    const script = 'setfacl -b f; chmod 660 f; setfacl -m u:1234:rw f; echo more >> g; setfacl -m g::- h'
    recordScript(space, script, { name: 'bundle' })
    const after = lists()
    expect(listOf('f')).toContain('group::rw-')
    expect(restore('--before').status).toBe(0)
    expect(lists()).toEqual(before)
    expect(restore('--before').stdout).toContain('Nothing to do')
    expect(savepoint(space, ['bundle', 'restore', '--before', '--in-place', '--yes', at('bundle.undo')]).status).toBe(0)
    expect(lists()).toEqual(after)
  })

  acl('stays with what an imported bundle tells of, and so do extended attributes', () => {
    space.sh(`${secret}; setfattr -n user.k -v v f; mkdir d; setfacl -m u:1234:rwx d; mkfifo p; setfacl -m u:1234:rw p`)
    const looks = () => space.sh('getfacl -cn f d p; getfattr --only-values -n user.k f; cat f')
    recordScript(space, 'ls -l d p; echo more >> f; chmod 700 d; chmod 600 p', { name: 'bundle' })
    const after = looks()
    const imported = savepointJson(space, ['bundle', 'import', at('bundle')])
    expect(savepoint(space, ['rollback', imported.after]).stdout).toContain('Nothing to change')
    expect(savepoint(space, ['rollback', imported.before]).status).toBe(0)
    expect([modeOf('f'), modeOf('d'), modeOf('p'), space.sh('cat f')]).toEqual(['660', '775', '664', 'secret\n'])
    expect(listOf('f')).toContain('user:1234:rw-')
    expect(savepoint(space, ['rollback', imported.after]).status).toBe(0)
    expect(looks()).toBe(after)
  })

  acl('that is still there stays, and the mode is its mask', () => {
    space.sh(secret)
    recordScript(space, 'echo more >> f; chmod 640 f', { name: 'bundle' })
    expect(restore('--before').status).toBe(0)
    expect(listOf('f')).toEqual(['user::rw-', 'user:1234:rw-', 'group::---', 'mask::rw-', 'other::---'])
    expect(restore('--after').status).toBe(0)
    expect(modeOf('f')).toBe('640')
  })

  acl('that allows nothing is one, too', () => {
    space.sh('for x in a b; do echo $x > $x; setfacl -m u:1234:rw $x; chmod 600 $x; done; echo none > c; chmod 600 c')
    const list = ['user::rw-', 'user:1234:rw-\t#effective:---', 'group::r--\t#effective:---', 'mask::---', 'other::---']
    recordScript(space, 'chmod 660 a; mv b c; setfacl -m u:1234:rw c; rm -f none', { name: 'bundle' })
    expect(restore('--before').status).toBe(0)
    expect([listOf('a'), listOf('c')]).toEqual([list, ['user::rw-', 'group::---', 'other::---']])
    expect(space.sh('cat b c')).toBe('b\nnone\n')
  })

  acl('that there was none of goes, with what the command moved there: others do not get at what comes back', () => {
    space.sh('echo secret > f; chmod 640 f; echo shared > g; chmod 600 g; setfacl -m u:1234:rw,g::- g; mkdir -m 750 d')
    space.sh('setfattr -n user.k -v v g; echo read > h; chmod 640 h')
    recordScript(space, 'mv g f; setfacl -m u:1234:rwx d; setfacl -m u:1234:r h', { name: 'bundle' })
    const imported = savepointJson(space, ['bundle', 'import', at('bundle')])
    const file = ['user::rw-', 'group::r--', 'other::---']
    const noList = { f: file, d: ['user::rwx', 'group::r-x', 'other::---'], h: file }
    const lists = () => ({ f: listOf('f'), d: listOf('d'), h: listOf('h') })
    expect(restore('--before').status).toBe(0)
    expect(lists()).toEqual(noList)
    expect(space.sh('cat f g; getfattr --only-values -n user.k f')).toBe('secret\nshared\nv')
    expect(restore('--before').stdout).toContain('Nothing to do')
    expect(savepoint(space, ['bundle', 'restore', '--before', '--in-place', '--yes', at('bundle.undo')]).status).toBe(0)
    expect([modeOf('f'), modeOf('d'), space.sh('cat f')]).toEqual(['600', '750', 'shared\n'])
    expect(savepoint(space, ['rollback', imported.before]).status).toBe(0)
    expect(lists()).toEqual(noList)
  })

  acl('whose group would get more than the mode says makes no sense', () => {
    space.sh(secret)
    recordScript(space, 'rm f', { name: 'bundle' })
    const manifest = JSON.parse(readFileSync(at('bundle/manifest.json'), 'utf8'))
    const state = manifest.files.find(({ path }: { path: string }) => path === space.at('f')).before
    Object.assign(state, { mode: 0o640, group_mode: 6 })
    writeFileSync(at('bundle/manifest.json'), JSON.stringify(manifest))
    for (const { status, stdout, stderr } of [
      savepoint(space, ['bundle', 'verify', at('bundle')]),
      restore('--before'),
    ])
      expect([status, stdout + stderr]).toEqual([
        14,
        expect.stringContaining('gives its group more than its mode allows'),
      ])
  })

  acl('that came from the directory: not with what is made again, nor by its undo', () => {
    space.sh('mkdir d; chmod 700 d; setfacl -d -m u::rwx,u:1234:rwx,g::---,o::--- d')
    recordScript(space, 'umask 007; echo made > d/f; mkdir d/in', { name: 'bundle' })
    expect([modeOf('d/f'), modeOf('d/in')]).toEqual(['660', '770'])
    expect([stateOf('d/f').after.group_mode, stateOf('d/in').after.group_mode]).toEqual([0, 0])
    expect(restore('--before').status).toBe(0)
    expect(savepoint(space, ['bundle', 'restore', '--before', '--in-place', '--yes', at('bundle.undo')]).status).toBe(0)
    expect([modeOf('d/f'), modeOf('d/in')]).toEqual(['600', '700'])
    expect(restore('--after', '--to', at('out')).status).toBe(0)
    expect([modeOf(`${at('out')}${space.at('d/f')}`), modeOf(`${at('out')}${space.at('d/in')}`)]).toEqual([
      '600',
      '700',
    ])
  })

  acl('of what was only looked at or read: elsewhere its group gets no rights by it either', () => {
    space.sh(`${secret}; mkdir d; chmod 700 d; setfacl -m u:1234:rwx d; mkfifo p; chmod 600 p; setfacl -m u:1234:rw p`)
    recordScript(space, 'cat f; ls -l d p f', { name: 'bundle' })
    for (const name of ['f', 'd', 'p']) {
      const { before, after } = stateOf(name)
      expect([before.group_mode, after.group_mode, before.mode]).toEqual([0, 0, name === 'd' ? 0o770 : 0o660])
    }
    expect(restore('--before', '--to', at('out')).status).toBe(0)
    const out = (name: string) => modeOf(`${at('out')}${space.at(name)}`)
    expect([out('f'), out('d'), out('p')]).toEqual(['600', '700', '600'])
  })
})

describe('extended attributes', () => {
  gated(hasXattrs && isRoot, 'xattrs, and root to look', 'of shut files, and links, stay with an import', () => {
    space.sh('echo 1 > f; setfattr -n user.k -v v f; chmod 000 f; echo 1 > g; ln g h; mkfifo p; ln p q')
    giveToUser(space)
    const looks = () => space.sh("getfattr --only-values -n user.k f; stat -c '%n %a %h %Y' *; cat f g h")
    const as = (...args: string[]) => savepointAsUser(space, args)
    const script = 'chmod 600 f; echo 2 >> f; chmod 000 f; echo 2 >> g; cat h; chmod 600 p; ls -l'
    expect(as('record', '-o', at('bundle'), '--', 'sh', '-c', script).status).toBe(0)
    const after = looks()
    const imported = JSON.parse(as('bundle', 'import', at('bundle'), '--json').stdout)
    expect(as('rollback', imported.after).stdout).toContain('Nothing to change')
    expect(looks()).toBe(after)
    expect(as('rollback', imported.before).status).toBe(0)
    expect(space.sh('getfattr --only-values -n user.k f; cat f g h')).toBe('v1\n1\n1\n')
  })

  gated(hasXattrs && isRoot, 'xattrs, and root to look', 'of what its owner has shut', () => {
    const modes = ['000', '200', '300', '400']
    const each = (script: string) => `for m in ${modes.join(' ')}; do ${script}; done`
    space.sh(each('echo 1 > f$m; echo 1 > a$m; mkdir d$m; for x in f$m a$m d$m; do setfattr -n user.k -v v$m $x; done'))
    space.sh(each('setfacl -m u:1234:r a$m; chmod $m f$m a$m d$m'))
    giveToUser(space)
    const looks = 'getfattr --only-values -n user.k $x; getfacl -cn $x'
    const keys = () => space.sh(each(`for x in f$m a$m; do ${looks}; done; getfattr --only-values -n user.k d$m`))
    const had = keys()
    const script = each('chmod 700 ?$m; for x in f$m a$m; do echo 2 >> $x; chmod $m $x; done; chmod 711 d$m')
    expect(savepointAsUser(space, ['record', '-o', at('bundle'), '--', 'sh', '-c', script]).status).toBe(0)
    for (const side of ['--before', '--after', '--before']) {
      const back = savepointAsUser(space, ['bundle', 'restore', side, '--in-place', '--yes', at('bundle')])
      expect([back.status, back.stderr]).toEqual([0, ''])
      expect(keys()).toBe(had)
      for (const mode of modes) expect(Number(modeOf(`f${mode}`))).toBe(Number(mode))
    }
    expect(modes.map(mode => modeOf(`d${mode}`))).toEqual(['0', '200', '300', '400'])
    expect(space.sh('cat f000 f200')).toBe('1\n1\n')
  })
})
