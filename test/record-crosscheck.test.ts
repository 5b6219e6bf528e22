/** What a recording says, compared with what others see: a walk before and after, and strace. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { isChanged } from '../src/record/index.ts'
import { gated } from './support/machine.ts'
import { record, recordScript } from './support/recorded.ts'
import { hasStrace } from './support/strace.ts'
import { differences, imageOf } from './support/tree-image.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
})
afterEach(() => space.remove())

describe('what changed is what a walk before and after finds changed', () => {
  /** Without the repositories themselves, which are not recorded. */
  const skip = (path: string) => /(^|\/)\.git(\/|$)/.test(path)

  function agree(script: string): number {
    const before = imageOf(space.dir, { skip })
    const recorded = recordScript(space, script)
    expect([recorded.result.status, recorded.manifest.incomplete_because]).toEqual([0, []])
    const walked = differences(before, imageOf(space.dir, { skip })).map(line => line.slice(0, line.indexOf(': ')))
    const told = recorded.bundle.files
      .filter(file => isChanged(file) && file.raw.startsWith(`${space.dir}/`))
      .map(({ raw }) => raw.slice(space.dir.length + 1))
    expect(told).toEqual(walked.sort())
    return told.length
  }

  it('git clone, and a checkout of another commit', () => {
    const source = join(space.base, 'source')
    mkdirSync(source)
    space.sh(
      'git init -q .; mkdir d; for i in 1 2 3 4 5 6 7 8 9; do echo $i > d/f$i; done; ln -s d link; git add -A; git commit -qm 1; rm d/f3; echo x >> d/f4; git mv d/f5 moved; git add -A; git commit -qm 2',
      source,
    )
    expect(agree('git clone -q ../source copy')).toBeGreaterThan(8)
    expect(agree('cd copy; git checkout -q HEAD~1; echo y > d/f9; git stash -q')).toBeGreaterThan(2)
  })

  it('make, and make clean', () => {
    for (const name of ['a', 'b'])
      space.write(`${name}.c`, `#include <stdio.h>\nint ${name}(void) { return puts("${name}"); }\n`)
    space.write('main.c', 'int a(void);\nint b(void);\nint main(void) { return a() + b(); }\n')
    space.write(
      'Makefile',
      'O = a.o b.o main.o\np: $(O)\n\tcc -o $@ $(O)\n%.o: %.c\n\tcc -c -o $@ $<\nclean:\n\trm -f $(O) p\n',
    )
    expect(agree('make -s -j2')).toBe(4)
    space.sh('sleep 0.02; touch a.c')
    expect(agree('make -s')).toBe(2)
    expect(agree('make -s clean')).toBe(4)
  })

  it('tar x, over what is there', () => {
    space.sh(
      'mkdir -p from/d/e; for i in 1 2 3 4 5; do echo $i > from/d/f$i; ln from/d/f$i from/d/e/hard$i; done; ln -s d from/l; tar cf ../a.tar from; rm from/d/f1 from/d/e/hard1; echo other > from/d/f2',
    )
    expect(agree('tar xf ../a.tar; tar xf ../a.tar -C /tmp --to-stdout >/dev/null')).toBeGreaterThan(2)
  })

  it('npm install', () => {
    space.write('dep/package.json', JSON.stringify({ name: 'dep', version: '1.0.0', bin: { dep: 'cli.js' } }))
    space.write('dep/cli.js', '#!/usr/bin/env node\n')
    space.write('dep/lib/index.js', 'module.exports = 1\n')
    space.write('package.json', JSON.stringify({ name: 'top', version: '1.0.0', dependencies: { dep: 'file:dep' } }))
    const env = 'npm_config_cache="$HOME/npm-cache" npm_config_update_notifier=false NODE_DISABLE_COMPILE_CACHE=1'
    expect(agree(`${env} npm install --offline --install-links --no-audit --no-fund --loglevel=error`)).toBeGreaterThan(
      4,
    )
    expect(agree(`${env} npm uninstall dep --offline --no-audit --no-fund --loglevel=error`)).toBeGreaterThan(4)
  })
})

describe('the contents', () => {
  it('are what DuckDB reads, under the keys and with the hashes that the manifest tells', async () => {
    space.write('old', 'old\n')
    space.write('large', Buffer.alloc(9_000_000, 'large '))
    const { bundle, directory, result } = recordScript(
      space,
      'cat old > new; echo x >> large; rm old; echo "ä" > "ümlaut"; : > empty',
    )
    expect(result.status).toBe(0)
    const states = bundle.files.flatMap(({ before, after }) => [before, after]).filter(({ blob }) => blob !== undefined)
    const told = new Map(states.map(({ blob, sha256 }) => [blob, sha256]))
    const db = await DuckDBInstance.create(':memory:')
    const connection = await db.connect()
    const file = join(directory, 'blobs.parquet')
    const found = await connection.runAndReadAll(`select key, sha256(content) from read_parquet('${file}')`)
    expect(new Map(found.getRows().map(([key, hash]) => [String(key), String(hash)]))).toEqual(told)
    const columns = await connection.runAndReadAll(
      `select name, type from parquet_schema('${file}') where type is not null`,
    )
    expect(columns.getRows()).toEqual([
      ['key', 'BYTE_ARRAY'],
      ['content', 'BYTE_ARRAY'],
    ])
    const codecs = await connection.runAndReadAll(`select distinct compression from parquet_metadata('${file}')`)
    expect(codecs.getRows()).toEqual([['SNAPPY']])
    connection.closeSync()
    db.closeSync()
  })

  it('are not there at all when there are none', () => {
    const { directory, bundle } = record(space, ['/bin/true'], { args: ['--record=changes'] })
    expect(readdirSync(directory)).toEqual(['manifest.json'])
    expect(bundle.files).toEqual([])
  })
})

describe('what was looked at', () => {
  gated(hasStrace, 'strace', 'is what strace sees', () => {
    for (const name of ['a', 'b', 'sub/c', 'sub/deep/d']) space.write(`from/${name}`)
    space.sh('ln -s from/sub link; ln -s nowhere dangling')
    const script =
      'cat from/a link/c dangling missing/x; cp -r from to; find to -type f -newer from/a; ls -lR from; test -x ./from/../from/b; mv to/sub moved; rm -r to; ln moved/c hard; ln -s x y; cd from; cat sub/deep/d; rmdir nothing; mkdir made; touch -d 2001-01-01 made; chmod 700 made'
    const seen = straced(script)
    space.sh('rm -rf to moved hard y from/made')
    const recorded = record(space, ['/bin/sh', '-c', script])
    const told = new Set(recorded.bundle.files.map(({ path }) => path))
    const ignored = ['/proc', '/sys', '/dev', '/usr', '/bin', '/lib', '/lib64']
    const isIgnored = (path: string) => ignored.some(each => path === each || path.startsWith(`${each}/`))
    // We name what a path means, strace what was written: "link/c" is "from/sub/c" to us, and the link besides.
    const real = (path: string) => path.replace(`${space.dir}/link/`, `${space.dir}/from/sub/`)
    const missing = [...seen].map(real).filter(path => !isIgnored(path) && !told.has(path))
    expect(missing).toEqual([])
    // Ours alone: a link on the way, what a link leads to that leads nowhere, and what is in a directory that is moved, as its paths
    // change with it. Of the system's own (/etc/localtime) nothing is said here.
    const named = new Set([...seen].map(real))
    const own = [...told].filter(path => !named.has(path) && path.startsWith(`${space.dir}/`))
    expect(own).toEqual(['link', 'moved/deep', 'moved/deep/d', 'nowhere'].map(name => space.at(name)))
  })

  /** The paths that calls name, absolute. */
  function straced(script: string): Set<string> {
    const log = join(space.base, 'strace')
    spawnSync('strace', ['-f', '-y', '-s', '4096', '-e', 'trace=%file', '-o', log, '/bin/sh', '-c', script], {
      cwd: space.dir,
      env: space.env,
    })
    // One process after another: a child begins where the one before it went.
    let cwd = space.dir
    const paths = new Set<string>()
    for (const line of readFileSync(log, 'utf8').split('\n')) {
      const call = /^\d+\s+(\w+)\((.*)/.exec(line)
      if (!call) continue
      const [, name, words] = call as unknown as [string, string, string]
      for (const path of namedBy(name, words, cwd)) {
        paths.add(path)
        if (name === 'chdir' && line.endsWith('= 0')) cwd = path
      }
    }
    return paths
  }

  /** strace tells what a descriptor means (`-y`), and that is where a path behind it begins. */
  function namedBy(call: string, words: string, cwd: string): string[] {
    const found = [...words.matchAll(/(?:(?:AT_FDCWD|\d+)<([^>]*)>, )?"((?:[^"\\]|\\.)*)"/g)].map(([, from, text]) => ({
      from,
      text: text!,
    }))
    const count = /^(rename|link)/.test(call) ? 2 : 1
    const skipped = call.startsWith('symlink') ? 1 : 0
    return found
      .slice(skipped, skipped + count)
      .filter(({ text }) => text !== '')
      .map(({ from, text }) => (text.startsWith('/') ? resolve(text) : resolve(from ?? cwd, text)))
  }
})
