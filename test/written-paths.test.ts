/** However a path is written, it is the file that it means: with `..`, through links, with what is not there. */
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect } from 'vitest'
import type { Savepoint } from '../src/index.ts'
import { probeTracers } from '../src/tracers/select.ts'
import { gated } from './support/machine.ts'
import { Workspace } from './support/workspace.ts'

const seesCalls = probeTracers().some(({ name, works }) => name === 'seccomp' && works)

let space: Workspace
let savepoint: Savepoint
beforeEach(async () => {
  space = new Workspace()
  for (const path of ['a/b/file', 'a/file', 'file', 'gone/x']) space.write(path, '1\n')
  mkdirSync(join(space.base, 'outside/deep'), { recursive: true })
  symlinkSync('a/b', space.at('link'))
  symlinkSync('../outside/deep', space.at('out'))
  savepoint = await space.open()
})
afterEach(() => space.remove())

const cases: [call: string, path: string, meant: string[]][] = [
  ['write', 'a/../file', ['file']],
  ['write', './a//b/../file', ['a/file']],
  ['write', '../work/a/b/../../a/./b/file', ['a/b/file']],
  ['write', 'a/b/../new', ['a/new']],
  // Not what the text says: a link on the way is followed first.
  ['write', 'link/../file', ['a/file']],
  ['write', 'link/../new', ['a/new']],
  ['write', 'out/../../work/file', ['file']],
  // It fails, unless somebody makes `missing` just then: what it would mean is not known.
  ['write', 'missing/../file', []],
  ['write', 'file/../file', []],
  ['mkdir', 'missing/..', []],
  ['mkdir', 'made/', ['made']],
  ['mkdir', 'a/b/../made/.', []],
  ['mkdir', 'a/./made', ['a/made']],
  ['rmdir', 'a/../empty/', ['empty']],
]

for (const [call, path, meant] of cases) {
  gated(seesCalls, 'seccomp', `${call} ${path}`, async () => {
    mkdirSync(space.at('empty'))
    const written: Record<string, string> = {
      write: "open(p, 'w').write('2')",
      mkdir: 'os.mkdir(p)',
      rmdir: 'os.rmdir(p)',
    }
    const script = `import os
p = '${path}'
try: ${written[call]}
except OSError: pass`
    // The snapshot on the way is one of what the run is known to have touched.
    await savepoint.run({ command: ['sh', '-c', `python3 -c "${script}"; echo > touched; rm -rf gone`] })
    const [guard] = savepoint.snapshots().filter(each => each.type === 'guard')
    expect(guard).toMatchObject({ runOnly: !path.startsWith('missing') })
    const [start] = savepoint.snapshots().filter(each => each.type === 'pre-run')
    const { changes } = await savepoint.diff({ from: start!.id, to: guard!.id })
    expect(changes.map(each => each.path)).toEqual([...meant, 'touched'])
    for (const each of meant)
      expect(savepoint.why(each).causes[0]).toMatchObject({
        execution: { argv: [expect.stringMatching(/python3$/), '-c', script] },
      })
  })
}

/** Below `a`, which is taken for the root: nothing leads out of it. */
const inRoot: [path: string, meant: string][] = [
  ['/new', 'a/new'],
  ['/b/file', 'a/b/file'],
  ['../../b/../new', 'a/new'],
  ['/absolute/new', 'a/b/new'],
  ['/absolute/../../../file', 'a/file'],
]

for (const [path, meant] of inRoot) {
  gated(seesCalls, 'seccomp', `openat2 in a root of its own: ${path}`, async () => {
    symlinkSync('/b', space.at('a/absolute'))
    const script = `import ctypes, os, struct
how = struct.pack('QQQ', os.O_WRONLY | os.O_CREAT, 0o644, 0x10)
fd = ctypes.CDLL(None).syscall(437, os.open('a', os.O_PATH), b'${path}', how, len(how))
os.write(fd, b'2')`
    const { exitCode } = await savepoint.run({
      command: ['sh', '-c', `python3 -c "${script}" && echo > touched && rm -rf gone`],
    })
    expect(exitCode).toBe(0)
    const [start, guard] = ['pre-run', 'guard'].map(type => savepoint.snapshots().find(each => each.type === type)!)
    expect(guard).toMatchObject({ runOnly: true })
    const { changes } = await savepoint.diff({ from: start!.id, to: guard!.id })
    expect(changes.map(each => each.path)).toEqual([meant, 'touched'])
    expect(savepoint.why(meant).causes[0]).toMatchObject({
      execution: { argv: [expect.stringMatching(/python3$/), '-c', script] },
    })
  })
}

gated(seesCalls, 'seccomp', '/proc/self is the process, also for a thread with a directory of its own', async () => {
  const script = `import ctypes, os, threading
CLONE_FS = 0x200
def work():
    assert ctypes.CDLL(None).unshare(CLONE_FS) == 0
    os.chdir('a')
    for path in ('/proc/self/cwd/of-process', '/proc/thread-self/cwd/of-thread', 'relative'): open(path, 'w').close()
thread = threading.Thread(target=work)
thread.start()
thread.join()`
  const { exitCode } = await savepoint.run({ command: ['python3', '-c', script] })
  expect(exitCode).toBe(0)
  for (const path of ['of-process', 'a/of-thread', 'a/relative'])
    expect(savepoint.why(path).causes).toMatchObject([{ event: { op: 'write' }, execution: { depth: 0 } }])
})
