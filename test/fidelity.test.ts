/** What a capture takes and a restore gives back, case by case. The random counterpart is property-restore.test.ts. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { createServer } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { rawFromText, type Savepoint } from '../src/index.ts'
import { fullImageOf } from './support/full-image.ts'
import { gated, hasXattrs, isRoot } from './support/machine.ts'
import { oddNames } from './support/tree-arbitrary.ts'
import { differences } from './support/tree-image.ts'
import { applyOps, noise } from './support/tree-ops.ts'
import { Workspace } from './support/workspace.ts'

let ws: Workspace
let sp: Savepoint
beforeEach(async () => {
  ws = new Workspace()
  sp = await ws.open()
})
afterEach(() => ws.remove())

/** Snapshot, `destroy`, rollback; then everything must be as it was, and nothing reported. */
async function comesBack(destroy: string): Promise<void> {
  const before = fullImageOf(ws.dir)
  const { id, root } = await sp.snapshot()
  ws.sh(destroy)
  expect(differences(before, fullImageOf(ws.dir))).not.toEqual([])
  const rolled = await sp.rollback(id)
  expect(rolled.leftAlone).toEqual([])
  expect(differences(before, fullImageOf(ws.dir))).toEqual([])
  expect((await sp.snapshot()).root).toBe(root)
}

describe('F1 modes', () => {
  const modes = [0o755, 0o600, 0o444, 0o4755, 0o2755, 0o1777, ...(isRoot ? [0o000] : [])]

  test('F1 files of every mode come back after they were deleted, and after chmod alone', async () => {
    for (const mode of modes) {
      ws.write(`f${mode.toString(8)}`)
      fs.chmodSync(ws.at(`f${mode.toString(8)}`), mode)
    }
    await comesBack('rm -f f4755 f444; chmod 640 f755 f600 f2755 f1777')
    expect(fs.statSync(ws.at('f4755')).mode & 0o7777).toBe(0o4755)
  })

  test('F1 a 0555 directory and its content come back; a change of directory mode alone is a change', async () => {
    ws.write('ro/sub/file')
    ws.write('rw/file')
    ws.sh('chmod 555 ro/sub ro; chmod 711 rw')
    await comesBack('chmod -R 755 ro; rm -r ro; chmod 700 rw')
    ws.sh('chmod 750 rw')
    const { changes } = await sp.changes()
    expect(changes.map(({ kind, path }) => `${kind} ${path}`)).toEqual(['metadata rw'])
  })

  gated(isRoot, 'root', 'F1 owners come back', async () => {
    ws.write('a')
    ws.write('d/b')
    fs.symlinkSync('a', ws.at('l'))
    ws.sh('chown 1234:2345 a d; chown -h 7:8 l; chmod 4755 a')
    await comesBack('chown 0:0 a; chown -h 0:0 l; rm -r d')
  })

  test('F1 the mode of the target directory itself comes back', async () => {
    ws.write('a')
    fs.chmodSync(ws.dir, 0o751)
    await comesBack('chmod 700 .')
  })
})

test('F2 a same-size edit with the mtime put back is noticed and restored', async () => {
  ws.write('src/a.ts', 'let a = 1\n')
  const { id } = await sp.snapshot()
  applyOps(ws.dir, [{ op: 'disguise', path: 'src/a.ts', seed: 7 }])
  const { changes } = await sp.changes()
  expect(changes.map(({ kind, path }) => `${kind} ${path}`)).toEqual(['modified src/a.ts'])
  await sp.rollback(id)
  expect(ws.read('src/a.ts')).toBe('let a = 1\n')
})

test('F3 binary, invalid UTF-8, CRLF and a missing last newline are byte-exact', async () => {
  const contents: [string, Buffer][] = [
    ['nul', Buffer.from([0, 1, 0, 255, 0])],
    ['invalid', Buffer.from([0xc3, 0x28, 0xff, 0xfe, 0xed, 0xa0, 0x80])],
    ['crlf', Buffer.from('one\r\ntwo\rthree\n\r')],
    ['bom', Buffer.from('\ufefftext without newline')],
    ['noise', noise(300_000, 3)],
  ]
  for (const [name, content] of contents) ws.write(name, content)
  const { id } = await sp.snapshot()
  ws.sh('for f in *; do echo overwritten > $f; done')
  await sp.rollback(id)
  for (const [name, content] of contents) expect(fs.readFileSync(ws.at(name)).equals(content), name).toBe(true)
})

describe('F4 names', () => {
  test('F4 odd names of files, directories and links come back', async () => {
    applyOps(
      ws.dir,
      oddNames.flatMap(name => [
        { op: 'dir', path: name, mode: 0o755 } as const,
        { op: 'file', path: `${name}/${name}`, size: 10, seed: 1, mode: 0o644 } as const,
        { op: 'link', path: `${name}/a`, target: name } as const,
      ]),
    )
    expect(fs.readdirSync(ws.dir)).toHaveLength(oddNames.length)
    await comesBack('find . -mindepth 1 -delete')
  })

  test('F4 a name that is not UTF-8 can be named, in its escaped form, wherever a path is taken', async () => {
    applyOps(ws.dir, [{ op: 'file', path: '\xff.txt', size: 5, seed: 1, mode: 0o644 }])
    const { id } = await sp.snapshot()
    ws.sh('rm *; echo keep > other')
    await sp.rollback(id, { paths: ['\\xff.txt'] })
    expect(fs.readdirSync(ws.dir, 'latin1').sort()).toEqual(['other', '\xff.txt'])
    expect((await sp.history('\\xff.txt')).path).toBe('\xff.txt')
  })

  test('F4 paths beyond 4096 bytes in total are captured, deleted and come back', async () => {
    const name = 'd'.repeat(250)
    const deep = (script: string) =>
      ws.sh(`i=0; while [ $i -lt 20 ]; do mkdir -p ${name}; cd -P ${name}; i=$((i+1)); done; ${script}`)
    deep('echo deep > file; ln -s file link; chmod 640 file')
    const { id, files } = await sp.snapshot()
    expect(files).toBe(2)
    ws.sh(`rm -rf ${name}`)
    const rolled = await sp.rollback(id)
    expect(rolled.leftAlone).toEqual([])
    expect(deep('cat link; stat -c %a file')).toBe('deep\n640\n')
    deep('echo edited > file; rm link')
    await sp.rollback(id)
    expect(deep('cat link')).toBe('deep\n')
    await sp.undo()
    expect(deep('cat file; ls | wc -l')).toBe('edited\n1\n')
    expect(fs.readdirSync(ws.dir)).toEqual([name])
    ws.sh(`rm -rf ${name}`)
  })
})

describe('F5 symlinks', () => {
  test('F5 absolute, escaping, dangling, looping, to directories, and their mtimes', async () => {
    ws.write('dir/file')
    ws.sh(`ln -s /etc/passwd absolute; ln -s ../../.. escaping; ln -s nowhere dangling; ln -s loop loop
      ln -s dir todir; ln -s ../absolute dir/up; touch -h -d @1500000000.123456789 dangling`)
    await comesBack('rm absolute; ln -sfn dir dangling; rm loop todir; mkdir todir; echo x > todir/x; rm -r dir')
  })

  test('F5 a .venv and a pnpm tree, ignored by nothing, come back link for link', async () => {
    ws.sh(`mkdir -p .venv/bin .venv/lib/python3.13/site-packages
      ln -s /usr/bin/python3 .venv/bin/python; ln -s python .venv/bin/python3; ln -s lib .venv/lib64
      echo 'home = /usr/bin' > .venv/pyvenv.cfg; echo x > .venv/lib/python3.13/site-packages/mod.py
      mkdir -p node_modules/.pnpm/a@1.0.0/node_modules/a node_modules/.pnpm/b@2.0.0/node_modules/b node_modules/.bin
      echo a > node_modules/.pnpm/a@1.0.0/node_modules/a/index.js; echo b > node_modules/.pnpm/b@2.0.0/node_modules/b/index.js
      ln -s ../../b@2.0.0/node_modules/b node_modules/.pnpm/a@1.0.0/node_modules/b
      ln -s .pnpm/a@1.0.0/node_modules/a node_modules/a; ln -s ../a/index.js node_modules/.bin/a
      ln node_modules/.pnpm/a@1.0.0/node_modules/a/index.js node_modules/.pnpm/b@2.0.0/node_modules/b/copy.js`)
    await comesBack('rm -rf node_modules .venv/bin; ln -sfn /tmp .venv/lib64')
    expect(ws.read('node_modules/a/index.js')).toBe('a\n')
  })
})

describe('F7 special files', () => {
  test('F7 a FIFO comes back; a socket is left alone; neither hangs a capture', async () => {
    ws.sh('mkfifo pipe; chmod 620 pipe; mkdir d')
    const server = createServer().listen(ws.at('d/socket'))
    await once(server, 'listening')
    const { id, files } = await sp.snapshot()
    expect(files).toBe(1)
    ws.sh('rm pipe; echo now a file > pipe; echo new > d/new')
    await sp.rollback(id)
    const stat = fs.lstatSync(ws.at('pipe'))
    expect(stat.isFIFO() && stat.mode & 0o777).toBe(0o620)
    expect(fs.readdirSync(ws.at('d'))).toEqual(['socket'])
    expect(fs.lstatSync(ws.at('d/socket')).isSocket()).toBe(true)
    await new Promise(resolve => server.close(resolve))
  })

  gated(isRoot, 'root', 'F7 device nodes come back', async () => {
    ws.sh('mknod null c 1 3; mknod disk b 7 250; chmod 666 null')
    await comesBack('rm null disk; mknod null c 1 5')
    expect(fs.lstatSync(ws.at('null')).rdev).toBe(0x103)
  })
})

describe('F8 links, holes, swaps, xattrs, times', () => {
  test('F8 hard links stay linked: across directories, after chmod through one name, after a link was broken', async () => {
    ws.write('d/one', 'shared\n')
    ws.sh('mkdir e; ln d/one e/two; ln d/one three; chmod 640 three')
    await comesBack('rm three; chmod 600 d/one; ln d/one four')
    await comesBack('cp three copy; mv copy three; rm -r e')
    const inodes = new Set(['d/one', 'e/two', 'three'].map(path => fs.statSync(ws.at(path)).ino))
    expect(inodes.size).toBe(1)
  })

  test('F8 hard links stay linked when a directory that holds one of them was moved, or moved away', async () => {
    ws.sh('mkdir a b; echo shared > a/one; ln a/one b/two; echo other > a/three; ln a/three b/four')
    // Older than the tick in which a capture reads everything again.
    await pause(70)
    await sp.snapshot()
    ws.sh('mv a z')
    await comesBack('rm -r z b')
    ws.sh(`mv z ${ws.base}/away`)
    await sp.snapshot()
    ws.sh('mkdir a z; echo new > a/one; ln a/one z/one')
    const { id } = await sp.snapshot()
    ws.sh('rm -r a b z')
    await sp.rollback(id)
    expect([ws.read('b/two'), ws.read('a/one')]).toEqual(['shared\n', 'new\n'])
    expect(fs.statSync(ws.at('a/one')).ino).toBe(fs.statSync(ws.at('z/one')).ino)
  })

  test('F8 sparse files stay sparse, small and large', async () => {
    applyOps(ws.dir, [
      { op: 'sparse', path: 'small', size: 500_000, seed: 1 },
      { op: 'sparse', path: 'large', size: 50_000_000, seed: 2 },
    ])
    ws.sh('truncate -s 30M only-a-hole')
    await comesBack('rm small large only-a-hole')
    for (const path of ['small', 'large', 'only-a-hole'])
      expect(fs.statSync(ws.at(path)).blocks * 512, path).toBeLessThan(100_000)
  })

  test('F8 sizes around the limit of whole files, and a change in the middle of a large one', async () => {
    for (const size of [0, 1, 1048575, 1048576, 1048577, 9_000_000]) ws.write(`s${size}`, noise(size, size))
    await comesBack(
      'rm s0 s1 s1048577; printf x | dd of=s9000000 bs=1 seek=4500000 conv=notrunc 2>&1; truncate -s -1 s1048576',
    )
  })

  test('F8 file, directory, link and FIFO swap places and come back', async () => {
    ws.write('f')
    ws.write('d/x/y')
    ws.sh('ln -s d l; mkfifo p; mkdir empty')
    await comesBack(
      'rm f; mkdir f; echo in > f/in; rm -r d; ln -s f d; rm l; echo file > l; rm p; mkdir p; rmdir empty; mkfifo empty',
    )
  })

  gated(
    hasXattrs,
    'attr and a kernel with user xattrs',
    'F8 xattrs of files and directories, also of read-only ones',
    async () => {
      ws.write('f')
      ws.write('d/g')
      ws.sh(
        'setfattr -n user.a -v 1 f; setfattr -n user.b -v 2 d; setfattr -n user.c -v 3 d/g; setfattr -n user.root -v 4 .; chmod 444 d/g; chmod 555 d',
      )
      await comesBack(
        'setfattr -x user.a f; setfattr -n user.new -v 9 f; chmod -R u+w d; setfattr -n user.c -v 4 d/g; setfattr -x user.b d',
      )
      await comesBack('chmod -R u+w d; rm -r d')
      await comesBack('setfattr -n user.root -v 5 .')
    },
  )

  gated(hasXattrs, 'acl', 'F8 access control lists come back', async () => {
    ws.write('f')
    ws.sh('mkdir d; setfacl -m u:1234:rw f; setfacl -d -m g:2345:rx d')
    await comesBack('setfacl -b f; setfacl -k d')
    expect(ws.sh('getfacl -pcn f')).toContain('user:1234:rw-')
  })

  gated(hasXattrs, 'acl', 'F8 an access control list that a FIFO got since goes again', async () => {
    ws.sh('mkfifo p')
    await comesBack('setfacl -m g:2345:r p')
    expect(ws.sh('getfacl -pcn p')).not.toContain('2345')
  })
})

test('so many tiny files that threads are used, with hardly any content: captured and restored', async () => {
  ws.sh('i=0; while [ $i -lt 400 ]; do : > empty$i; echo same > same$i; i=$((i+1)); done')
  await comesBack('rm empty*; echo other > same7')
})

test('F9 a file that is written to all the time never yields a torn "ok"', async () => {
  // Each write replaces all bytes in place by one letter, so that a torn read has two different ones.
  const size = 700_000
  ws.write('busy', Buffer.alloc(size, 'a'))
  const script = `const fs = require('fs'); const fd = fs.openSync('busy', 'r+')
    const all = [...'abcdefgh'].map(c => Buffer.alloc(${size}, c)); process.stdout.write('on')
    for (let i = 0; ; i++) fs.writeSync(fd, all[i % 8], 0, ${size}, 0)`
  const writer = spawn(process.execPath, ['-e', script], { cwd: ws.dir, stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    await once(writer.stdout, 'data')
    for (let i = 0; i < 5; i++) {
      const snapshot = await sp.snapshot()
      const reported = snapshot.unsettled || snapshot.skipped.some(({ path }) => path === rawFromText('busy'))
      const letters = snapshot.skippedCount > 0 ? new Set() : new Set(sp.read(snapshot.id, 'busy'))
      expect(letters.size <= 1 || reported).toBe(true)
    }
  } finally {
    writer.kill('SIGKILL')
    await once(writer, 'exit')
  }
})
