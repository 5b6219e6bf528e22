/** The demo proves itself, completion works in a real shell, and a long timeline is listed at once. */
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  builtCommand,
  giveToUser,
  savepoint,
  savepointAsUser,
  savepointInShell,
  savepointJson,
} from './support/built-cli.ts'
import { cpuMsOf } from './support/cpu-time.ts'
import { hasTerminal, onTerminal } from './support/terminal.ts'
import { Workspace } from './support/workspace.ts'

const MAX_LOG_MS = 150
const SNAPSHOTS = 1000

let space: Workspace
beforeEach(() => {
  space = new Workspace()
  space.write('a.txt', 'one\n')
})
afterEach(() => space.remove())

describe('savepoint demo --fast', () => {
  it('ends with 0 and the proof, leaves nothing behind, and touches nothing of the user', () => {
    const temporary = join(space.base, 'tmp')
    mkdirSync(temporary)
    const env = { ...space.env, TMPDIR: temporary }
    const { status, stdout, stderr } = savepoint(space, ['demo', '--fast'], { env })
    expect({ status, stdout, stderr }).toMatchObject({ status: 0 })
    expect(stdout).toContain('$ savepoint run -- sh ../agent.sh\n')
    expect(stdout).toContain('$ savepoint undo\n')
    const [, before, damaged, after] =
      /before the agent {2}(\w+) [\s\S]*after the agent {3}(\w+) [\s\S]*after undo {8}(\w+) /.exec(stdout)!
    expect([after === before, damaged === before]).toEqual([true, false])
    expect(stdout).toContain('  Byte for byte the same.\n')
    expect(`${stdout}${stderr}`).not.toContain('\x1b')
    expect(readdirSync(temporary)).toEqual([])
    expect(readdirSync(space.base).sort()).toEqual(['tmp', 'user', 'work'])
    expect(readdirSync(space.userHome)).toEqual([])
  })

  it('--json is the proof alone, also for a user without a name in the system', () => {
    giveToUser(space)
    const { status, stdout } = savepointAsUser(space, ['demo', '--fast', '--json'])
    expect(status).toBe(0)
    const result = JSON.parse(stdout)
    expect(Object.keys(result)).toEqual([
      'identical',
      'digest_before',
      'digest_after_agent',
      'digest_after_undo',
      'files',
    ])
    expect(result.identical).toBe(true)
  })
})

describe('completion in bash', () => {
  /** A `savepoint` for PATH, as an installed one would be. */
  function install(): NodeJS.ProcessEnv {
    const bin = join(space.base, 'bin')
    mkdirSync(bin)
    writeFileSync(join(bin, 'savepoint'), `#!/bin/sh\nexec ${savepointInShell} "$@"\n`, { mode: 0o755 })
    return { ...space.env, PATH: `${bin}:${space.env.PATH}` }
  }

  it('answers verbs, options, snapshots, tags and runs', () => {
    savepoint(space, ['snapshot', '-m', 'before the change'])
    savepoint(space, ['tag', 'good'])
    savepoint(space, ['run', '-q', '--', 'touch', 'x'])
    writeFileSync(
      join(space.base, 'complete.bash'),
      `source <(savepoint completion bash)
ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _savepoint; printf '%s\\n' "\${COMPREPLY[@]}" | sort | tr '\\n' ' '; echo; }
ask savepoint rol
ask savepoint snapshots --li
ask savepoint rollback go
ask savepoint diff snap_
ask savepoint prune run_
ask savepoint show before
complete -p savepoint
`,
    )
    const output = space.sh(`PATH='${install().PATH}' bash '${join(space.base, 'complete.bash')}'`).split('\n')
    const ids = (savepointJson(space, ['snapshots']) as { id: string }[]).map(({ id }) => id).sort()
    expect(output).toEqual([
      'rollback ',
      '--limit ',
      'good ',
      `${ids.join(' ')} `,
      `${savepointJson(space, ['runs'])[0].id} `,
      'before\\ the\\ change ',
      'complete -o default -F _savepoint savepoint',
      '',
    ])
  })

  it.skipIf(!hasTerminal)(
    `by the Tab key, with quoting${hasTerminal ? '' : ' (skipped: needs python3 for a pseudo-terminal)'}`,
    async () => {
      savepoint(space, ['snapshot', '-m', 'before the change'])
      space.write('a.txt', 'two\n')
      const { complete, output } = await onTerminal(
        ['bash', '--norc', '--noprofile', '-i'],
        [
          { wait: '\\$ ', type: 'source <(savepoint completion bash)\n' },
          { wait: '\\$ ', type: 'savepoint rollb\t' },
          { wait: 'rollback ', type: 'bef\t' },
          { wait: 'before\\\\ the\\\\ change ', type: '\n' },
          { wait: 'To undo: savepoint undo', type: 'exit\n' },
        ],
        { cwd: space.dir, env: install() },
      )
      expect({ complete, output }).toMatchObject({ complete: true })
      expect(space.read('a.txt')).toBe('one\n')
    },
  )
})

describe('a timeline of a thousand snapshots', () => {
  it(`log takes less than ${MAX_LOG_MS} ms, and says the same as ever`, () => {
    savepoint(space, ['snapshot', '-m', 'first'])
    const timelines = join(space.home, 'timelines')
    const database = new DatabaseSync(join(timelines, readdirSync(timelines)[0]!, 'timeline.sqlite'))
    const columns = 'type, root, backend, size_delta, added, modified, deleted, files, bytes, skipped_count, unsettled'
    const add = database.prepare(
      `INSERT INTO snapshots (id, parent, label, created_at, ${columns})
       SELECT ?, ?, ?, created_at + ?, ${columns} FROM snapshots WHERE seq = 1`,
    )
    const { id } = database.prepare('SELECT id FROM snapshots').get() as { id: string }
    database.exec('BEGIN')
    let parent = id
    for (let i = 1; i < SNAPSHOTS; i++) {
      const next = `snap_${i
        .toString(32)
        .padStart(8, 'a')
        .replace(/[0189]/g, 'z')}${i}`
      add.run(next, parent, `number ${i}`, i)
      // Every tenth leaves its parent for a second child: a tree, not a line.
      if (i % 10 !== 0) parent = next
    }
    database.exec('COMMIT')
    database.close()
    const { status, stdout } = savepoint(space, ['log'])
    expect([status, stdout.match(/\* /g)?.length]).toEqual([0, SNAPSHOTS])
    const [program, ...args] = builtCommand
    const times = Array.from({ length: 5 }, () =>
      cpuMsOf(program!, [...args, 'log'], { cwd: space.dir, env: space.env }),
    )
    expect(Math.min(...times)).toBeLessThan(MAX_LOG_MS)
  })
})
