/** `savepoint connect`: settings of agents get our entry, keep everything else, and lose it again. */
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { checkout, savepoint, savepointJson } from './support/built-cli.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
let settings: NodeJS.ProcessEnv
beforeEach(() => {
  space = new Workspace()
  // Without a store that must be named.
  settings = { ...space.env, SAVEPOINT_HOME: '' }
})
afterEach(() => space.remove())

const launcher = join(checkout, 'savepoint')
const connect = (...args: string[]) => savepoint(space, ['connect', ...args], { env: settings })
const put = (file: string, text: string) => {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}
const read = (file: string) => readFileSync(file, 'utf8')

const stdio = { command: launcher, args: ['mcp'] }
const mcpServers = JSON.stringify({ mcpServers: { savepoint: stdio } })
const toml = `[mcp_servers.savepoint]\ncommand = "${launcher}"\nargs = ["mcp"]\n`
const inWorkspace = { command: launcher, args: ['mcp', '-t', `\${workspaceFolder}`] }

/** Where it is written without more ado, and in the other scope. */
const places: [agent: string, scope: string | undefined, file: string, content: string][] = [
  ['claude', undefined, 'work/.mcp.json', mcpServers],
  ['claude', 'user', 'user/.claude.json', mcpServers],
  ['codex', undefined, 'user/.codex/config.toml', toml],
  ['codex', 'project', 'work/.codex/config.toml', toml],
  ['gemini', undefined, 'work/.gemini/settings.json', mcpServers],
  ['gemini', 'user', 'user/.gemini/settings.json', mcpServers],
  ['cursor', undefined, 'work/.cursor/mcp.json', JSON.stringify({ mcpServers: { savepoint: inWorkspace } })],
  ['cursor', 'user', 'user/.cursor/mcp.json', mcpServers],
  [
    'opencode',
    undefined,
    'work/opencode.json',
    JSON.stringify({ mcp: { savepoint: { type: 'local', command: [launcher, 'mcp'], enabled: true } } }),
  ],
]

describe('an agent without settings', () => {
  it.each(places)(
    '%s, scope %s: %s is made, left alone the second time, and removed',
    (agent, scope, name, content) => {
      const file = join(space.base, name)
      const args = [agent, ...(scope ? ['--scope', scope] : [])]
      expect(connect(...args)).toMatchObject({
        status: 0,
        stdout: expect.stringContaining(`connected: created ${file}\n`),
      })
      expect(name.endsWith('.toml') ? read(file) : JSON.stringify(JSON.parse(read(file)))).toBe(content)
      const before = statSync(file)
      expect(connect(...args).stdout).toContain(`connected already, in ${file}`)
      expect(statSync(file).mtimeMs).toBe(before.mtimeMs)
      expect(connect(...args, '--remove').stdout).toContain(`not connected any more: removed ${file}`)
      // Neither a copy nor an empty directory of the agent.
      expect([readdirSync(space.dir), readdirSync(space.userHome)]).toEqual([[], []])
    },
  )

  it.each([
    ['', 'empty'],
    ['here', 'here, which is relative'],
  ])('HOME=%s is not where anything is written for the user', (HOME, why) => {
    const { status, stderr } = savepoint(space, ['connect', 'codex'], { env: { ...settings, HOME } })
    expect([status, stderr]).toEqual([
      2,
      expect.stringMatching(new RegExp(`HOME is ${why}\\n  hint: .*--scope project`)),
    ])
    expect(readdirSync(space.dir)).toEqual([])
    expect(savepoint(space, ['connect', 'codex', '--scope', 'project'], { env: { ...settings, HOME } }).status).toBe(0)
  })

  it('a place that cannot be made is refused at once', () => {
    const env = { ...settings, CODEX_HOME: '/proc/nowhere' }
    const { status, stderr } = savepoint(space, ['connect', 'codex'], { env })
    expect([status, stderr]).toEqual([1, expect.stringContaining('Cannot change /proc/nowhere/config.toml')])
  })

  it('is only shown with --print, and cannot be removed where it is not', () => {
    const file = join(space.dir, '.mcp.json')
    expect(connect('claude', '--print').stdout).toContain(`+++ b${file}`)
    expect(connect('claude', '--remove').stdout).toContain(`is not connected in ${file}`)
    expect(existsSync(file)).toBe(false)
  })
})

describe('settings that are there', () => {
  const text = '// mine\n{\n\t"theme": "dark", /* so */\n\t"mcpServers": {\n\t\t"other": {} // theirs\n\t}\n}\n'

  it('stay, comments and mode included, and are kept beside the file', () => {
    const file = join(space.dir, '.gemini/settings.json')
    put(file, text)
    chmodSync(file, 0o600)
    const result = savepointJson(space, ['connect', 'gemini'], { env: settings })
    const backup = `${file}.before-savepoint`
    expect(result).toEqual({
      agent: 'gemini',
      scope: 'project',
      printed: false,
      command: [launcher, 'mcp'],
      files: [{ file, action: 'changed', backup }],
    })
    expect(read(file)).toContain('"dark", /* so */\n')
    expect(read(file)).toContain('"other": {}, // theirs\n')
    expect(read(backup)).toBe(text)
    expect([statSync(file).mode & 0o777, statSync(backup).mode & 0o777]).toEqual([0o600, 0o600])
    expect(connect('gemini', '--remove').status).toBe(0)
    expect(read(file)).toBe(text)
    expect(existsSync(backup)).toBe(false)
  })

  it.each([
    ['gemini', '{ "a": [1], /* x */ "mcpServers": { "o": {"command":"y"} } }', '"a'],
    ['codex', '# mine\n[mcp_servers.other]\ncommand = "x" # so', 'mine'],
    ['codex', 'model = "x"\n\n\n', 'model'],
    ['cursor', '\ufeff{"a":1}\r\n', '"a'],
    ['claude', '{"mcpServers":{"savepoint":{"command":"another","env":{"A":"1"}}}}', 'mcpServers'],
  ])('of %s are as before after --remove, to the last byte: %s', (agent, before, word) => {
    const name = { codex: '.codex/config.toml', claude: '.mcp.json', cursor: '.cursor/mcp.json' }[agent]
    const file = join(space.dir, name ?? '.gemini/settings.json')
    const scope = ['--scope', 'project']
    put(file, before)
    expect(connect(agent, ...scope).stdout).toContain(`changed ${file}`)
    expect(connect(agent, ...scope).stdout).toContain('connected already')
    expect(connect(agent, ...scope, '--remove').stdout).toContain(`changed ${file}\n`)
    expect(read(file)).toBe(before)
    expect(existsSync(`${file}.before-savepoint`)).toBe(false)
    // What was edited since stays, and only our entry goes.
    connect(agent, ...scope)
    writeFileSync(file, read(file).replace(word, `${word}2`))
    if (agent === 'claude') return
    connect(agent, ...scope, '--remove')
    expect([read(file).includes(`${word}2`), read(file).includes(launcher)]).toEqual([true, false])
  })

  it.each([
    ['gemini', '.gemini/settings.json', '{}\n'],
    ['claude', '.mcp.json', ' \n'],
    ['codex', '.codex/config.toml', ''],
  ])('of %s that say nothing are there again after --remove: %s %j', (agent, name, before) => {
    const file = join(space.dir, name)
    put(file, before)
    const scope = ['--scope', 'project']
    expect(connect(agent, ...scope).stdout).toContain(`changed ${file}`)
    expect(connect(agent, ...scope, '--remove').stdout).toContain(`changed ${file}\n`)
    expect(read(file)).toBe(before)
    expect(existsSync(`${file}.before-savepoint`)).toBe(false)
    expect(connect(agent, ...scope, '--remove').stdout).toContain(`is not connected in ${file}`)
    expect(read(file)).toBe(before)
  })

  it.each([
    ['claude', '.mcp.json'],
    ['codex', '.codex/config.toml'],
    ['opencode', 'opencode.json'],
  ])('of %s that were connected from elsewhere are without it after --remove: %s', (agent, name) => {
    const file = join(space.dir, name)
    const scope = ['--scope', 'project']
    const other = { env: { ...settings, SAVEPOINT_HOME: join(space.base, 'other-home') } }
    const files = () => readdirSync(space.dir, { recursive: true, withFileTypes: true }).filter(each => each.isFile())
    const none = files().length
    const mine = agent === 'codex' ? 'model = "x"\n' : '{ "a": 1 }\n'
    for (const before of [undefined, mine]) {
      if (before !== undefined) put(file, before)
      expect(savepoint(space, ['connect', agent, ...scope], other).status).toBe(0)
      expect(connect(agent, ...scope).stdout).toContain(`changed ${file}`)
      expect(connect(agent, ...scope, '--remove').stdout).toContain('is not connected any more')
      expect(existsSync(file) ? read(file) : undefined).toBe(before)
      expect(files().length).toBe(before === undefined ? none : none + 1)
    }
  })

  it.each([
    ['gemini', '.gemini/settings.json', '{"mcpServers":{"savepoint":{"command":"mine","env":{"KEY":"1"}}}}'],
    ['codex', '.codex/config.toml', '[mcp_servers.savepoint]\ncommand = "mine"\n'],
  ])('of %s that have nothing but an entry of the user under our name are kept beside: %s', (agent, name, mine) => {
    const file = join(space.dir, name)
    put(file, mine)
    connect(agent, '--scope', 'project', '--remove')
    expect(existsSync(file)).toBe(false)
    expect(read(`${file}.before-savepoint`)).toBe(mine)
  })

  it('keep what the user has added to our entry when it is connected again, from elsewhere', () => {
    const file = join(space.dir, '.gemini/settings.json')
    put(file, '{"mcpServers":{"savepoint":{"command":"/old/savepoint","args":["mcp"],"trust":true}}}')
    connect('gemini')
    expect(JSON.parse(read(file))).toEqual({ mcpServers: { savepoint: { ...stdio, trust: true } } })
    expect(connect('gemini').stdout).toContain('is connected already')
  })

  it('in a form that cannot be edited are not said to be without it', () => {
    put(join(space.dir, '.codex/config.toml'), '[mcp_servers]\nsavepoint = { command = "x" }\n')
    const { status, stderr } = connect('codex', '--scope', 'project', '--remove')
    expect([status, stderr]).toEqual([1, expect.stringContaining('has a form that cannot be edited here')])
  })

  it('an older copy is not written over', () => {
    const file = join(space.dir, '.mcp.json')
    put(file, text)
    put(`${file}.before-savepoint`, 'older')
    expect(connect('claude').stdout).toContain(`(before: ${file}.before-savepoint-2)`)
    expect([read(`${file}.before-savepoint`), read(`${file}.before-savepoint-2`)]).toEqual(['older', text])
  })

  it('that are a link stay one', () => {
    const real = join(space.base, 'dotfiles/claude.json')
    const file = join(space.userHome, '.claude.json')
    put(real, '{"a": 1}\n')
    symlinkSync(real, file)
    expect(connect('claude', '--scope', 'user').status).toBe(0)
    expect(lstatSync(file).isSymbolicLink()).toBe(true)
    expect(JSON.parse(read(real))).toMatchObject({ a: 1, mcpServers: { savepoint: stdio } })
  })

  it('that are a link to nothing yet are made where it points, and the link stays', () => {
    const file = join(space.dir, '.mcp.json')
    const hooks = join(space.dir, '.claude/settings.local.json')
    mkdirSync(join(space.base, 'dotfiles'))
    mkdirSync(dirname(hooks))
    symlinkSync('../dotfiles/first.json', file)
    symlinkSync('second.json', join(space.base, 'dotfiles/first.json'))
    symlinkSync('../../dotfiles/hooks.json', hooks)
    expect(connect('claude').stdout).toContain(`created ${file}\n`)
    expect([file, hooks].map(each => lstatSync(each).isSymbolicLink())).toEqual([true, true])
    expect(JSON.parse(read(join(space.base, 'dotfiles/second.json')))).toEqual(JSON.parse(mcpServers))
    expect(read(join(space.base, 'dotfiles/hooks.json'))).toContain('hook claude')
    expect(connect('claude', '--remove').status).toBe(0)
    // Neither the links nor the directory that is not the agent's own.
    expect([file, hooks].map(each => lstatSync(each).isSymbolicLink())).toEqual([true, true])
    expect(readdirSync(join(space.base, 'dotfiles'))).toEqual(['first.json'])
  })

  it('of opencode with comments have a name of their own', () => {
    const file = join(space.dir, 'opencode.jsonc')
    put(file, '{\n  // models\n}\n')
    expect(connect('opencode').stdout).toContain(file)
    expect(read(file)).toMatch(/\/\/ models\n {2}"mcp": \{/)
  })

  it.each([
    ['gemini', '.gemini/settings.json', '{"mcpServers": {'],
    ['claude', '.mcp.json', '[]'],
    ['cursor', '.cursor/mcp.json', '{"mcpServers": "none"}'],
    ['claude', '.mcp.json', Buffer.from([0x7b, 0xff, 0x7d])],
    ['codex', '.codex/config.toml', 'model = = "x"\n'],
  ])('of %s that cannot be read are not touched: %s %s', (agent, name, broken) => {
    const file = join(space.dir, name)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, broken)
    const { status, stderr } = connect(agent, '--scope', 'project')
    expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringContaining(`Cannot change ${file}: `) })
    expect(readFileSync(file)).toEqual(Buffer.from(broken))
    expect(readdirSync(dirname(file)).filter(each => each.includes('before-savepoint'))).toEqual([])
  })

  it.each(['mkfifo', 'mkdir'])('that are no file (%s) are not waited for', make => {
    space.sh(`${make} .mcp.json`)
    expect(connect('claude')).toMatchObject({ status: 1, stderr: expect.stringContaining('it is no file') })
  })
})

describe('what is written', () => {
  it('is the name where PATH leads to it', () => {
    const bin = join(space.base, 'bin')
    mkdirSync(bin)
    symlinkSync(launcher, join(bin, 'savepoint'))
    const env = { ...settings, PATH: `${bin}:${settings.PATH}` }
    expect(savepointJson(space, ['connect', 'claude', '--print'], { env }).command).toEqual(['savepoint', 'mcp'])
  })

  it('names the store where it is not the usual one', () => {
    const { command } = savepointJson(space, ['connect', 'claude', '--print'])
    expect(command).toEqual([launcher, 'mcp', '--home', space.home])
    // Said in the environment, it is still the usual one: others read the same .mcp.json.
    const env = { ...settings, SAVEPOINT_HOME: join(space.userHome, '.savepoint') }
    expect(savepointJson(space, ['connect', 'claude', '--print'], { env }).command).toEqual([launcher, 'mcp'])
  })

  it('starts a server', () => {
    connect('claude')
    const { command, args } = JSON.parse(read(space.at('.mcp.json'))).mcpServers.savepoint
    expect([command, args]).toEqual([launcher, ['mcp']])
    expect(savepoint(space, args, { env: settings })).toMatchObject({ status: 0, stdout: '', stderr: '' })
  })
})

it.each([
  [[], /no agent is named \(claude, codex, gemini, cursor, opencode\)/],
  [['claud'], /Did you mean claude\?/],
  [['claude', 'codex'], /"codex" is one word too many/],
  [['claude', '--scope', 'all'], /scope/],
])('connect %j is refused', (args, message) => {
  const { status, stderr } = connect(...args)
  expect(status).toBe(2)
  expect(stderr).toMatch(message)
})
