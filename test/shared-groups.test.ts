/** What belongs to a group that its user is in, but not as the first: `bundle restore` and `rollback` give it back to that group. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { asOrdinaryUser, builtCommand, giveToUser } from './support/built-cli.ts'
import { gated, isRoot } from './support/machine.ts'
import { Workspace } from './support/workspace.ts'

const user = asOrdinaryUser.owner
const [shared, foreign] = [user + 1, user + 2]
const asMember = ['setpriv', `--reuid=${user}`, `--regid=${user}`, `--groups=${user},${shared}`, '--']

let space: Workspace
beforeEach(() => {
  space = new Workspace()
})
afterEach(() => space.remove())

const at = (name: string) => join(space.base, name)

function member(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  const [program, ...rest] = [...asMember, ...builtCommand, ...args]
  return spawnSync(program!, rest, { cwd: space.dir, env: space.env, encoding: 'utf8', timeout: 60_000 })
}
const recorded = (script: string) =>
  expect(member('record', '-o', at('bundle'), '--', 'sh', '-c', script).status).toBe(0)
const restore = (bundle: string, ...rest: string[]) =>
  member('bundle', 'restore', '--before', '--in-place', '--yes', ...rest, at(bundle))
const states = () =>
  space.sh("find . -mindepth 1 -printf '%p %m %U:%G ' -a ! -type d -printf '%T@ %l' -o -printf '\\n'; cat f d/g")

describe('a directory that is shared with a group', () => {
  const grouped = gated.bind(undefined, isRoot && user !== 0, 'root, and a checkout that others can read')

  grouped('is put back with the group, and that can be taken back', () => {
    space.sh('echo 1 > f; mkdir d; echo 2 > d/g; ln -s f l; echo 3 > mine')
    giveToUser(space)
    space.sh(`chgrp -Rh ${shared} .; find . -type d -exec chmod 2775 {} +; chmod 640 f`)
    const before = states()
    recorded('echo more >> f; chmod 600 d/g; rm l; echo new > n; mkdir nd; chmod 2700 d; chgrp $(id -g) mine')
    const after = states()
    expect(after).not.toBe(before)
    for (const [bundle, wanted] of [
      ['bundle', before],
      ['bundle.undo', after],
      ['bundle.undo.undo', before],
    ] as const) {
      const { status, stdout, stderr } = restore(bundle)
      expect([status, stderr]).toEqual([0, ''])
      expect(stdout).not.toContain('Left alone')
      expect(states()).toBe(wanted)
    }
  })

  grouped(
    'whose files have an owner or a group that only root can give: those of others stay, and all are named',
    () => {
      space.sh('echo 1 > f; mkdir d; echo 2 > d/g; echo 3 > d/touched')
      giveToUser(space)
      space.sh(`chmod 666 f d/*; chgrp ${foreign} f; chown ${foreign}:${shared} d/*`)
      recorded('echo more >> f; echo more >> d/g; touch d/touched')
      const { status, stdout } = restore('bundle')
      expect([status, space.sh('cat f d/g')]).toEqual([3, '1\n2\nmore\n'])
      expect(stdout).toContain('1 replaced, 0 deleted, 0 with other attributes')
      for (const name of ['f', 'd/g', 'd/touched']) expect(stdout).toContain(`  ${space.at(name)}\n`)
      expect(stdout).toContain('Left alone (this user may not change it, or its owner)')
      expect(stdout).toContain(
        `Restored (without its owner or other attributes, which the system refused):\n  ${space.at('f')}\n`,
      )
      expect(stdout).not.toContain('changed since')
      const owners = () => space.sh('stat -c %u:%g f d/g').trim().split('\n')
      expect(owners()).toEqual([`${user}:${user}`, `${foreign}:${shared}`])
      // Its group is lost for good.
      expect(restore('bundle.undo').status).toBe(3)
      expect(space.sh('cat f d/g')).toBe('1\nmore\n2\nmore\n')
      expect(restore('bundle', '--force').status).toBe(3)
      expect([space.sh('cat f d/g'), owners()]).toEqual(['1\n2\n', [`${user}:${user}`, `${user}:${shared}`]])
    },
  )

  grouped('what somebody gives to another group since stays', () => {
    space.sh('echo 1 > f')
    giveToUser(space)
    recorded('echo more >> f')
    space.sh(`chgrp ${shared} f`)
    const { status, stdout } = restore('bundle')
    expect([status, space.sh('cat f')]).toEqual([3, '1\nmore\n'])
    expect(stdout).toContain('it was changed since the command ended')
  })

  grouped('a rollback gives the group back where it cannot give the owner', () => {
    space.sh('echo 1 > f; mkdir d; mkfifo p')
    giveToUser(space)
    space.sh(`chown ${foreign}:${shared} f d p; chmod 2775 d`)
    expect(member('snapshot').status).toBe(0)
    space.sh('rm -r f d p')
    const { status, stdout } = member('rollback', 'HEAD')
    expect([status, stdout]).toEqual([3, expect.stringContaining('Restored, but not with all attributes (3)')])
    expect(space.sh('stat -c "%n %a %u:%g" d f p')).toBe(
      ['d 2775', 'f 644', 'p 644'].map(each => `${each} ${user}:${shared}\n`).join(''),
    )
  })

  /** Files of others, and of a group that only root can give. */
  function makeForeign() {
    space.sh('mkdir d; for i in setuid setgid grouped listed d/in big kept replaced; do echo $i > $i; done; mkfifo p')
    space.sh('head -c 20000000 /dev/zero > big')
    giveToUser(space)
    // So that what is made there gets a group that is neither.
    space.sh(
      `chgrp ${shared} . && chmod 2777 .; chown ${foreign}:${shared} setuid setgid; chmod 4777 setuid; chmod 2777 setgid`,
    )
    space.sh(
      `chgrp ${foreign} grouped listed d d/in big p replaced; chmod 2771 d; chmod 640 grouped d/in; chmod 664 big p replaced`,
    )
    space.sh(`setfacl -m u:${shared}:rw,g::r,o::- listed`)
  }
  const modes = () => space.sh('stat -c "%n %a %u" big d d/in grouped listed p replaced setgid setuid')
  const fewer = [
    'big 644',
    'd 711',
    'd/in 600',
    'grouped 600',
    'listed 600',
    'p 644',
    'replaced 644',
    'setgid 777',
    'setuid 777',
  ]
  const asFewer = fewer.map(each => `${each} ${user}\n`).join('')
  const change = 'rm -r setuid setgid grouped listed big p d; echo more >> replaced'
  const paths = ['setuid', 'setgid', 'grouped', 'listed', 'big', 'p', 'd', 'd/in', 'replaced']

  grouped('what cannot get its group or owner back gives nobody rights by that, and is named', () => {
    makeForeign()
    recorded(change)
    const { status, stdout } = restore('bundle')
    expect([status, modes()]).toEqual([3, asFewer])
    for (const path of paths) expect(stdout.split('\n').filter(line => line === `  ${space.at(path)}`)).toHaveLength(1)
    expect(space.sh('stat -c %g grouped replaced')).toBe(`${user}\n${user}\n`)
    // As it left them: it can be taken back.
    expect(restore('bundle.undo').stdout).not.toContain('changed since')
    expect(space.sh('ls; cat replaced')).toBe('kept\nreplaced\nreplaced\nmore\n')
  })

  grouped('nor by a rollback', () => {
    makeForeign()
    expect(member('snapshot').status).toBe(0)
    space.sh(change)
    const { status, stdout } = member('rollback', 'HEAD')
    expect([status, modes()]).toEqual([3, asFewer])
    for (const path of paths) expect(stdout).toContain(`  ${path}: the system refused its owner, or other attributes`)
  })

  grouped('a set-group-id bit that the system drops without a word is named', () => {
    space.sh('mkdir d; touch d/in')
    giveToUser(space)
    space.sh(`chgrp ${foreign} d; chmod 2775 d`)
    recorded('chmod 700 d')
    const { status, stdout } = restore('bundle')
    expect([status, space.sh('stat -c %a d')]).toEqual([3, '775\n'])
    expect(stdout).toContain(`  ${space.at('d')}\n`)
  })

  grouped('elsewhere nothing is named, and no set-id bit is set', () => {
    makeForeign()
    recorded('cat setuid setgid grouped; rm setuid')
    const { status, stdout } = member('bundle', 'restore', '--before', '--to', at('out'), at('bundle'))
    expect([status, stdout]).toEqual([0, expect.not.stringContaining('Left alone')])
    expect(space.sh(`cd ${at('out')}${space.dir} && stat -c '%n %a' grouped setgid setuid`)).toBe(
      'grouped 600\nsetgid 777\nsetuid 777\n',
    )
  })
})
