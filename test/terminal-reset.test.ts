/** The terminal after a full-screen agent that could not tidy it up, and after one that could. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { builtCommand, savepoint } from './support/built-cli.ts'
import { hasTmux, Tmux } from './support/tmux.ts'
import { Workspace } from './support/workspace.ts'

const flags = ['alternate_on', 'cursor_flag', 'mouse_any_flag', 'keypad_cursor_flag', 'keypad_flag']
const sane = '0 1 0 0 0'
const screenful = '1 0 1 1 1'

/** The first argument: `alternate` or `ordinary` screen. It ends by itself when it gets a line. */
const agent = `
import os, signal, sys, tty
open('a', 'w').write('a2')
tty.setcbreak(0)
if sys.argv[1] == 'alternate': print('\\033[?1049h\\033[2J\\033[H', end='')
print('\\033[?25l\\033[?1000h\\033[?1006h\\033[?2004h\\033[?1h\\033=FULL SCREEN', flush=True)
open('../pid', 'w').write(str(os.getpid()))
sys.stdin.readline()
`

describe.skipIf(!hasTmux)(hasTmux ? 'in tmux' : 'in tmux (skipped: needs tmux)', () => {
  let space: Workspace
  let terminal: Tmux
  beforeEach(() => {
    space = new Workspace()
    space.write('a', 'a1')
    writeFileSync(join(space.base, 'agent.py'), agent)
    expect(savepoint(space, ['snapshot', '-m', 'good']).status).toBe(0)
    terminal = new Tmux({ directory: space.base, cwd: space.dir, env: space.env })
  })
  afterEach(() => {
    terminal.close()
    space.remove()
  })

  async function start(screen: 'alternate' | 'ordinary'): Promise<number> {
    await terminal.command(
      `echo be''fore; ${builtCommand.map(word => `'${word}'`).join(' ')} run -- python3 ../agent.py ${screen}`,
    )
    await terminal.shows(/FULL SCREEN/)
    await terminal.shows(() => space.sh('cat ../pid 2>/dev/null || true') !== '')
    return Number(space.sh('cat ../pid'))
  }

  /** The shell is back: it echoes what is typed, on the screen from before. */
  async function isBack(): Promise<void> {
    await terminal.command(`echo ba''ck-$((1 + 1)); stty -a | grep -o ' .\\?icanon'`)
    await terminal.shows(/ba''ck[\s\S]*\nback-2\n icanon/)
  }

  const stop = () => expect(savepoint(space, ['rollback', 'good']).status).toBe(0)

  it('an agent that is stopped for a rollback: all is as before it, and the summary can be read', async () => {
    await start('alternate')
    expect(terminal.flags(...flags)).toBe(screenful)
    stop()
    await terminal.shows(/the run was stopped for/)
    await isBack()
    expect(terminal.flags(...flags)).toBe(sane)
    expect(terminal.screen).toMatch(/\nbefore\n[\s\S]*the run was stopped for[\s\S]*back-2/)
    expect(terminal.screen).not.toContain('FULL SCREEN')
  })

  it('one that is killed by somebody else: the same', async () => {
    process.kill(await start('alternate'), 'SIGKILL')
    await terminal.shows(/To undo/)
    await isBack()
    expect(terminal.flags(...flags)).toBe(sane)
    expect(terminal.screen).toMatch(/\nbefore\n[\s\S]*To undo[\s\S]*back-2/)
  })

  it('one that was on the ordinary screen: what it wrote stays, and what comes next stands below', async () => {
    // What was saved then is not where the cursor is to go now.
    await terminal.command(`printf '\\033[?1049h\\033[?1049l'; seq 5`)
    await terminal.shows(/\n5\n/)
    await start('ordinary')
    stop()
    await terminal.shows(/the run was stopped for/)
    await isBack()
    expect(terminal.flags(...flags)).toBe(sane)
    expect(terminal.screen).toMatch(
      /\n5\n[\s\S]*\nbefore\n[\s\S]*FULL SCREEN\n[\s\S]*the run was stopped for[\s\S]*back-2/,
    )
  })

  it('one that ends by itself leaves the terminal as it wants to', async () => {
    await start('alternate')
    terminal.type('end')
    await terminal.shows(/To undo/)
    expect(terminal.flags(...flags)).toBe(screenful)
  })
})
