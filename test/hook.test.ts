/** `savepoint hook claude`: what an agent's events become; and that it never stands in the agent's way. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { startRun, useRuns } from './support/background-run.ts'
import { savepoint, savepointInShell, savepointJson } from './support/built-cli.ts'
import type { Workspace } from './support/workspace.ts'

let space: Workspace
useRuns(made => {
  space = made
})

const hook = (event: object | string, env: NodeJS.ProcessEnv = {}, args = ['hook', 'claude']) =>
  savepoint(space, args, {
    input: typeof event === 'string' ? event : JSON.stringify(event),
    stdio: 'pipe',
    env: { ...space.env, ...env },
  })
const event = (name: string, session = 's1', more: object = {}) => ({
  session_id: session,
  transcript_path: '/nowhere',
  cwd: space.dir,
  hook_event_name: name,
  ...more,
})
const silent = { status: 0, stdout: '', stderr: '' }

async function turns() {
  const engine = await space.open()
  return engine.snapshots().map(({ type, label }) => `${type}: ${label}`)
}

describe('turns', () => {
  it('are snapshots with session, turn and tool, where something changed', async () => {
    expect(hook(event('UserPromptSubmit', 's1', { prompt: 'a secret' }))).toMatchObject(silent)
    expect(hook(event('PreToolUse', 's1', { tool_name: 'Edit' }))).toMatchObject(silent)
    space.write('a', 'a2')
    expect(hook(event('PostToolUse', 's1', { tool_name: 'Edit' }))).toMatchObject(silent)
    expect(hook(event('Stop'))).toMatchObject(silent)
    space.write('a', 'by hand')
    hook(event('PreToolUse', 's2', { tool_name: 'Bash' }))
    hook(event('UserPromptSubmit'))
    space.write('b')
    hook(event('Stop'))
    expect(await turns()).toEqual([
      'turn: claude s1 turn 1',
      'turn: claude s1 turn 1: Edit',
      'turn: claude s2 turn 1: before Bash',
      'turn: claude s1 turn 2',
      'turn: claude s1 turn 2: end',
    ])
    // Back to how it was before the second prompt; and their labels do not keep them for ever.
    expect(savepoint(space, ['rollback', 'claude s1 turn 2']).status).toBe(0)
    expect(existsSync(space.at('b'))).toBe(false)
    const decisions = savepointJson(space, ['prune', '--dry-run']).decisions as { rule: string }[]
    expect(decisions.map(({ rule }) => rule)).not.toContain('labelled')
  })

  it('of a run belong to it, and it goes on', async () => {
    const json = JSON.stringify(event('PostToolUse', 's1', { tool_name: 'Write' }))
    space.write('../event', json)
    const run = await startRun(space, `echo a2 > a; ${savepointInShell} hook claude < ../event; echo then $?; read x`)
    run.say('go on')
    expect(await run.ended).toMatchObject({ status: 0, stdout: expect.stringContaining('then 0') })
    const engine = await space.open()
    expect(engine.snapshots().find(({ type }) => type === 'turn')).toMatchObject({
      label: 'claude s1 turn 1: Write',
      run: run.id,
    })
  })

  it('of tools that end at the same time are one where there is one change', async () => {
    hook(event('UserPromptSubmit'))
    space.write('a', 'a2')
    space.write('../event', JSON.stringify(event('PostToolUse', 's1', { tool_name: 'Write' })))
    space.sh(`for i in 1 2 3 4; do ${savepointInShell} hook claude < ../event & done; wait`)
    expect(await turns()).toEqual(['turn: claude s1 turn 1', 'turn: claude s1 turn 1: Write'])
    const engine = await space.open()
    const same = await engine.snapshot({ type: 'turn', label: 'same', onlyIfChanged: true })
    expect(same).toMatchObject({ id: engine.head().id, label: 'claude s1 turn 1: Write' })
  })

  it('are taken where the project begins', async () => {
    mkdirSync(space.at('sub'))
    const inside = { ...event('UserPromptSubmit'), cwd: space.at('sub') }
    expect(hook(inside, { CLAUDE_PROJECT_DIR: space.dir })).toMatchObject(silent)
    expect(await turns()).toEqual(['turn: claude s1 turn 1'])
  })
})

describe('what goes wrong', () => {
  it.each([
    ['garbage', 'garbage'],
    ['nothing', ''],
    ['no event', '{}'],
    ['null', 'null'],
  ])('%s is exit code 1, which does not stop the agent', (_what, text) => {
    expect(hook(text)).toMatchObject({
      status: 1,
      stdout: '',
      stderr: expect.stringContaining('Cannot read the event'),
    })
  })

  it('a broken configuration, an agent that is not known and a place that is refused are exit code 1, too', () => {
    expect(hook(event('Stop'), {}, ['hook', 'cat']).status).toBe(1)
    const atHome = { ...event('UserPromptSubmit'), cwd: space.userHome }
    expect(hook(atHome)).toMatchObject({ status: 1, stderr: expect.stringContaining('Cannot protect') })
    expect(hook({ ...atHome, hook_event_name: 'Stop' })).toMatchObject(silent)
    space.write('savepoint.yaml', 'nonsense: [')
    expect(hook(event('UserPromptSubmit'))).toMatchObject({ status: 1, stdout: '' })
    space.write('savepoint.yaml', 'snapshots: { disabled: true }')
    expect(hook(event('UserPromptSubmit'))).toMatchObject({ status: 0, stdout: '' })
  })

  it('an event of tomorrow, and words that are none, do no harm', async () => {
    expect(hook(event('SubagentStop'))).toMatchObject(silent)
    expect(hook({ ...event('UserPromptSubmit'), session_id: `${'x'.repeat(300)}\n` })).toMatchObject(silent)
    expect(hook({ hook_event_name: 'Stop', session_id: 7, tool_name: {} })).toMatchObject(silent)
    const other = mkdtempSync(join(space.base, 'other-'))
    // The first that is ever heard need not be a prompt.
    expect(hook({ ...event('PreToolUse'), cwd: other })).toMatchObject(silent)
    expect(await turns()).toEqual([`turn: claude ${'x'.repeat(64)} turn 1`])
  })
})

describe('connect claude', () => {
  const file = () => space.at('.claude/settings.local.json')
  const groups = () => JSON.parse(readFileSync(file(), 'utf8')).hooks

  it('installs it beside hooks of others, once, and what it installs works', async () => {
    const theirs = { hooks: [{ type: 'command', command: 'echo done' }] }
    mkdirSync(space.at('.claude'))
    const before = `${JSON.stringify({ hooks: { Stop: [theirs] }, model: 'x' }, null, 2)}\n`
    writeFileSync(file(), before)
    expect(savepoint(space, ['connect', 'claude']).stdout).toContain(`connected: changed ${file()}`)
    expect(Object.keys(groups())).toEqual(['Stop', 'UserPromptSubmit', 'PreToolUse', 'PostToolUse'])
    expect(groups().Stop).toMatchObject([theirs, { hooks: [{ type: 'command' }] }])
    expect(groups().PreToolUse[0].matcher).toMatch(/^Bash\|/)
    const { command } = groups().UserPromptSubmit[0].hooks[0]
    const input = JSON.stringify(event('UserPromptSubmit'))
    // With nothing of the environment that names the store: it is in the command.
    const env = { PATH: process.env.PATH, HOME: space.userHome }
    execFileSync('sh', ['-c', command], { input, cwd: space.dir, env })
    expect(await turns()).toEqual(['turn: claude s1 turn 1'])
    const text = readFileSync(file(), 'utf8')
    expect(savepoint(space, ['connect', 'claude']).stdout).toContain(`already, in ${file()}`)
    expect(readFileSync(file(), 'utf8')).toBe(text)
    savepoint(space, ['connect', 'claude', '--remove'])
    expect(readFileSync(file(), 'utf8')).toBe(before)
  })

  it('counts where the user put it beside a hook of his, from where it goes alone', () => {
    savepoint(space, ['connect', 'claude'])
    const [ours] = groups().Stop[0].hooks
    const theirs = { type: 'command', command: 'echo done' }
    const shared = { hooks: [theirs, ours] }
    const moved = { ...JSON.parse(readFileSync(file(), 'utf8')), hooks: { ...groups(), Stop: [shared] } }
    writeFileSync(file(), JSON.stringify(moved, null, 2))
    expect(savepoint(space, ['connect', 'claude']).stdout).toContain(`already, in ${file()}`)
    expect(groups().Stop).toEqual([shared])
    savepoint(space, ['connect', 'claude', '--remove'])
    expect(groups()).toEqual({ Stop: [{ hooks: [theirs] }] })
    // One of an older place, with a matcher that is not ours, gives way to the present one.
    const another = { type: 'command', command: 'other-tool hook claude' }
    const old = { type: 'command', command: "'/an old/savepoint' hook claude --home /x" }
    writeFileSync(
      file(),
      JSON.stringify({ hooks: { PostToolUse: [{ matcher: 'Edit', hooks: [another, old, theirs] }] } }),
    )
    savepoint(space, ['connect', 'claude'])
    expect(groups().PostToolUse).toMatchObject([{ matcher: 'Edit', hooks: [another, theirs] }, { hooks: [ours] }])
  })

  it('replaces what an older place of ours left', () => {
    const old = { hooks: [{ type: 'command', command: '/old/savepoint hook claude' }] }
    mkdirSync(space.at('.claude'))
    writeFileSync(file(), JSON.stringify({ hooks: { Stop: [old] } }))
    savepoint(space, ['connect', 'claude'])
    expect(groups().Stop).toHaveLength(1)
    expect(groups().Stop[0].hooks[0].command).not.toContain('/old/')
    expect(join(space.dir, '.mcp.json')).toSatisfy(existsSync)
  })
})
