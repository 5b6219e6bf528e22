import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, test, vi } from 'vitest'
import { defaultConfig } from './config.ts'
import { loadConfig } from './load.ts'

let root: string
let homeDir: string
let targetDir: string
let userFile: string
let targetFile: string

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'savepoint-config-'))
  homeDir = join(root, 'home')
  targetDir = join(root, 'target')
  mkdirSync(homeDir)
  mkdirSync(targetDir)
  userFile = join(homeDir, 'config.yaml')
  targetFile = join(targetDir, 'savepoint.yaml')
})

afterEach(() => rmSync(root, { recursive: true, force: true }))

const load = (env: Record<string, string | undefined> = {}) => loadConfig({ targetDir, homeDir, env, cwd: root })

describe('without files', () => {
  it('gives the defaults and names the places', async () => {
    expect(await load()).toEqual({
      config: defaultConfig,
      sources: [
        { path: userFile, present: false },
        { path: targetFile, present: false },
      ],
      weakens: [],
      lockWaitMs: 10_000,
    })
  })

  it('needs neither a target nor a home', async () => {
    const { sources } = await loadConfig({ targetDir: undefined, homeDir: join(root, 'none'), env: {} })
    expect(sources).toEqual([{ path: join(root, 'none', 'config.yaml'), present: false }])
  })

  it('does not load yaml or zod, also not for variables', async () => {
    vi.doMock('./parse-config.ts', () => {
      throw new Error('loaded')
    })
    await load({ SAVEPOINT_BACKEND: 'cas' })
    writeFileSync(userFile, '')
    await expect(load()).rejects.toThrow()
    vi.doUnmock('./parse-config.ts')
  })
})

describe('merging', () => {
  it('puts target over user over defaults, key by key, and replaces lists', async () => {
    writeFileSync(userFile, 'snapshots:\n  backend: cas\n  max_file_bytes: 1 GB\n  exclude: {additional: [a, b]}\n')
    writeFileSync(targetFile, 'snapshots:\n  max_file_bytes: 2 GB\n  exclude: {additional: [c]}\n')
    const { config, sources, weakens } = await load()
    expect(config.snapshots.backend).toBe('cas')
    expect(config.snapshots.max_file_bytes).toBe(2e9)
    expect(config.snapshots.exclude).toEqual({ ignore_gitignore: false, additional: ['c'], keep: ['.env', '.env.*'] })
    expect(config.tracing).toEqual(defaultConfig.tracing)
    expect(sources.map(({ present }) => present)).toEqual([true, true])
    expect(weakens).toEqual(['1 extra exclusion'])
  })

  it('counts only what the target takes away, and only while it holds', async () => {
    writeFileSync(userFile, 'snapshots: {disabled: true}\n')
    writeFileSync(targetFile, 'snapshots: {triggers: {disable_pre_run: true}}\n')
    writeFileSync(join(root, 'extra.yaml'), 'snapshots: {triggers: {disable_pre_run: false}}\n')
    expect((await load()).weakens).toEqual(['pre-run snapshots are off'])
    const withExtra = await load({ SAVEPOINT_CONFIG: 'extra.yaml' })
    expect(withExtra.config.snapshots.triggers.disable_pre_run).toBe(false)
    expect(withExtra.weakens).toEqual([])
    expect(withExtra.sources.at(-1)).toEqual({ path: join(root, 'extra.yaml'), present: true })
  })

  it('takes an empty file as present and silent', async () => {
    writeFileSync(targetFile, '')
    const { config, sources } = await load()
    expect(config).toEqual(defaultConfig)
    expect(sources[1]).toEqual({ path: targetFile, present: true })
  })
})

describe('variables', () => {
  it('win over every file', async () => {
    writeFileSync(targetFile, 'snapshots: {backend: zfs}\ntracing: {tracer: none}\n')
    const { config, weakens } = await load({ SAVEPOINT_BACKEND: 'cas', SAVEPOINT_TRACER: 'ptrace' })
    expect(config.snapshots.backend).toBe('cas')
    expect(config.tracing.tracer).toBe('ptrace')
    expect(weakens).toEqual([])
  })

  it('count as unset when empty, and unknown ones are ignored', async () => {
    const env = { SAVEPOINT_BACKEND: '', SAVEPOINT_CONFIG: '', SAVEPOINT_TRACER: undefined, SAVEPOINT_OTHER: 'x' }
    expect((await load(env)).config).toEqual(defaultConfig)
    expect((await load({ SAVEPOINT_LOCK_WAIT_MS: '' })).lockWaitMs).toBe(10_000)
  })

  test.each(['abc', '-1', '1.5', '1e3', '10s', ' 5', '99999999999999999999'])(
    'SAVEPOINT_LOCK_WAIT_MS=%s is refused',
    async value => {
      await expect(load({ SAVEPOINT_LOCK_WAIT_MS: value })).rejects.toMatchObject({
        code: 'config.invalid',
        message: `Cannot use SAVEPOINT_LOCK_WAIT_MS: it must be a whole number of milliseconds, but is "${value}"`,
        hint: 'For example SAVEPOINT_LOCK_WAIT_MS=10000, or unset it.',
      })
    },
  )

  it('SAVEPOINT_LOCK_WAIT_MS is read as it is', async () => {
    expect((await load({ SAVEPOINT_LOCK_WAIT_MS: '0' })).lockWaitMs).toBe(0)
    expect((await load({ SAVEPOINT_LOCK_WAIT_MS: '250' })).lockWaitMs).toBe(250)
  })

  test.each([
    [
      { SAVEPOINT_BACKEND: 'cass' },
      /^Cannot use SAVEPOINT_BACKEND: .*but is "cass"$/,
      'Did you mean SAVEPOINT_BACKEND=cas?',
    ],
    [{ SAVEPOINT_TRACER: 'dtrace' }, /^Cannot use SAVEPOINT_TRACER: /, 'Did you mean SAVEPOINT_TRACER=ptrace?'],
    [
      { SAVEPOINT_TRACER: 'magic' },
      /^Cannot use SAVEPOINT_TRACER: /,
      'Known: auto, seccomp, ptrace, ebpf, eslogger, none.',
    ],
    [
      { SAVEPOINT_CONFIG: 'no.yaml' },
      /^Cannot use SAVEPOINT_CONFIG: .*no\.yaml does not exist$/,
      /^Create the file, or unset/,
    ],
  ])('%j is refused', async (env, message, hint) => {
    const error = await load(env).catch(error => error)
    expect(error).toMatchObject({ code: 'config.invalid', message: expect.stringMatching(message) })
    expect(error.hint).toMatch(hint)
  })
})

describe('files that are not configuration', () => {
  const failure = async () => {
    const error = await load().catch(error => error)
    expect(error).toMatchObject({ code: 'config.invalid' })
    return error.message as string
  }

  test.each([
    ['invalid UTF-8', Buffer.from('# ok\n# caf\xe9\n', 'latin1'), ':2:6: it is not valid UTF-8 here'],
    ['a cut character', Buffer.from([0x23, 0xe2, 0x82]), ':1:2: it is not valid UTF-8 here'],
    ['UTF-16', Buffer.from('\ufeffsnapshots:\n', 'utf16le'), ':1:1: it is UTF-16, not UTF-8'],
    ['zeros', Buffer.from('snapshots:\n\0\0\0'), ':2:1: it holds a zero byte'],
    ['too much', Buffer.alloc(1024 * 1024 + 1, '#'), ': it is larger than 1 MiB'],
    ['a mistake', Buffer.from('snapshots:\n  disabeld: true\n'), ':2:3: "disabeld" is not a key of snapshots'],
  ])('%s', async (_, bytes, what) => {
    writeFileSync(targetFile, bytes)
    expect(await failure()).toContain(`Cannot use ${targetFile}${what}`)
  })

  it('accepts exactly 1 MiB, and a byte order mark', async () => {
    writeFileSync(targetFile, `\ufeffsnapshots: {disabled: true} #`.padEnd(1024 * 1024 - 2, '-'))
    expect((await load()).config.snapshots.disabled).toBe(true)
  })

  it('refuses a directory and a link to nothing, and follows a good link', async () => {
    mkdirSync(targetFile)
    expect(await failure()).toMatch(/it is not a regular file$/)
    rmSync(targetFile, { recursive: true })
    symlinkSync('elsewhere', targetFile)
    expect(await failure()).toMatch(/it is a symbolic link to a file that does not exist$/)
    writeFileSync(join(targetDir, 'elsewhere'), 'snapshots: {disabled: true}')
    expect((await load()).config.snapshots.disabled).toBe(true)
  })

  it('refuses a loop of links', async () => {
    symlinkSync('savepoint.yaml', targetFile)
    expect(await failure()).toMatch(/it cannot be read \(ELOOP\)$/)
  })

  it.runIf(process.platform === 'linux')('reports a failing read', async () => {
    const error = await loadConfig({ targetDir, homeDir, env: { SAVEPOINT_CONFIG: '/proc/self/mem' } }).catch(e => e)
    expect(error.message).toMatch(/the disk has failed, or is gone$/)
  })

  it('does not follow a link out of the target, and shows nothing of what it leads to', async () => {
    writeFileSync(join(homeDir, 'private'), 'root:secret')
    for (const link of [join(homeDir, 'private'), relative(targetDir, join(homeDir, 'private'))]) {
      symlinkSync(link, targetFile)
      expect(await failure()).toBe(`Cannot use ${targetFile}: it is a symbolic link that leads out of the directory`)
      rmSync(targetFile)
    }
  })

  test.each([
    ['an unreadable file', () => targetFile, () => `${targetFile}: reading it is not permitted`],
    [
      'a directory that nobody may enter',
      () => targetDir,
      () => `${targetDir}: the directory itself cannot be read: its mode does not permit it`,
    ],
  ])('refuses %s', async (_, closed, message) => {
    writeFileSync(targetFile, '')
    // Root reads everything: be somebody else for the moment of reading.
    const isRoot = process.geteuid?.() === 0
    if (isRoot) {
      for (let dir = dirname(targetFile); dir !== tmpdir() && dir !== '/'; dir = dirname(dir)) chmodSync(dir, 0o755)
    }
    chmodSync(closed(), 0)
    if (isRoot) process.seteuid?.(65534)
    try {
      expect(await failure()).toBe(`Cannot use ${message()}`)
    } finally {
      if (isRoot) process.seteuid?.(0)
      chmodSync(closed(), 0o700)
    }
  })
})
