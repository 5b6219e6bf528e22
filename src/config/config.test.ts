import { describe, expect, it, test } from 'vitest'
import { cpuMsDuring } from '../../test/support/cpu-time.ts'
import { defaultConfig, keysOf, mergeConfig, redactFlags } from './config.ts'
import { configSchema } from './schema.ts'

const gibibyte = 1024 ** 3

describe('defaults', () => {
  it('protect: nothing is turned off, secrets are redacted, small precious files are kept, and nothing named is dropped', () => {
    const { snapshots, tracing } = defaultConfig
    const flags = [...Object.entries(snapshots), ...Object.entries(snapshots.triggers), ...Object.entries(tracing)]
    expect(flags.filter(([key, value]) => /^disable/.test(key) && value !== false)).toEqual([])
    expect(tracing.redact.length).toBeGreaterThan(10)
    expect(snapshots.exclude.keep).toEqual(['.env', '.env.*'])
    expect(snapshots.retention).toMatchObject({ delete_initial: false, manual_max: Number.POSITIVE_INFINITY })
    expect([snapshots.max_file_bytes, snapshots.min_free_bytes]).toEqual([5 * gibibyte, gibibyte])
  })

  it('cannot be changed by a caller', () => {
    expect(() => defaultConfig.snapshots.exclude.keep.push('x')).toThrow()
  })

  it('pass the schema, which knows the same keys', () => {
    const unlimited = (_: string, value: unknown) => (value === Number.POSITIVE_INFINITY ? 'unlimited' : value)
    const written = JSON.parse(JSON.stringify(defaultConfig, unlimited))
    expect(configSchema.parse(written)).toEqual(defaultConfig)
    expect(schemaKeys(configSchema).sort()).toEqual(keysOf(defaultConfig).sort())
  })
})

describe('mergeConfig', () => {
  it('replaces lists and leaves the rest alone', () => {
    const merged = mergeConfig(defaultConfig, { snapshots: { exclude: { keep: ['a'] } } })
    expect(merged.snapshots.exclude).toEqual({ ignore_gitignore: false, additional: [], keep: ['a'] })
    expect(merged.tracing).toEqual(defaultConfig.tracing)
    expect(defaultConfig.snapshots.exclude.keep).toEqual(['.env', '.env.*'])
  })
})

describe('default redaction', () => {
  const patterns = defaultConfig.tracing.redact.map(source => new RegExp(source, redactFlags))
  const redact = (line: string) => patterns.reduce((text, pattern) => text.replace(pattern, '‹redacted›'), line)

  test.each([
    ['curl -H "Authorization: Bearer abc.def-123456" x', 'abc.def-123456'],
    ['curl -H "authorization: token 0123456789abcdef" x', '0123456789abcdef'],
    ['curl -H "X-Api-Key: hunter2hunter2" x', 'hunter2hunter2'],
    ['tool --password=hunter2 x', 'hunter2'],
    ['tool --password hunter2 x', 'hunter2'],
    ['tool --db-password "hunter2 and more" x', 'and more'],
    ['tool -password hunter2', 'hunter2'],
    ['tool --password "hunter2', 'hunter2'],
    ['tool --password=a"hunter2', 'hunter2'],
    ['env TOKEN="hunter2', 'hunter2'],
    ['gh --token hunter2', 'hunter2'],
    ['tool --api-key=hunter2', 'hunter2'],
    ['tool --client-secret hunter2', 'hunter2'],
    ['env PGPASSWORD=hunter2 psql', 'hunter2'],
    ['sh -c export GITHUB_TOKEN=hunter2; x', 'hunter2'],
    ['env AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG x', 'wJalrXUtnFEMI/K7MDENG'],
    ['curl -d {"password":"hunter2"}', 'hunter2'],
    ['curl -u me:hunter2 x', 'hunter2'],
    ['mysql -u root -phunter2 db', 'hunter2'],
    ['git clone https://me:hunter2@example.com/x', 'hunter2'],
    ['psql postgres://me:hunter2@db/x', 'hunter2'],
    ['redis-cli -u redis://:hunter2@db', 'hunter2'],
    ['git clone https://0123456789abcdef0123@example.com/x', '0123456789abcdef0123'],
    ['x AKIAIOSFODNN7EXAMPLE', 'AKIAIOSFODNN7EXAMPLE'],
    [`x ghp_${'a1B2'.repeat(9)}`, 'a1B2'],
    [`x github_pat_${'a1B2_'.repeat(9)}`, 'a1B2'],
    [`x sk-ant-api03-${'a1B2'.repeat(9)}`, 'a1B2'],
    [`x sk_live_${'a1B2'.repeat(6)}`, 'a1B2'],
    ['x glpat-a1B2a1B2a1B2a1B2a1B2', 'a1B2'],
    ['x xoxb-1234567890-abcdef', '1234567890'],
    ['x eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln', 'eyJzdWIiOiIxIn0'],
    ['x -----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----', 'MIIEow'],
  ])('%s', (line, secret) => {
    expect(redact(line)).not.toContain(secret)
    expect(redact(line)).toContain('‹redacted›')
  })

  test.each([
    'npm run build --workspace app',
    'git commit -m "pass the token count along"',
    'git log --author me -p src/a.ts',
    'curl -u https://example.com/a/b',
    'docker run -p 8080:80 task-runner',
    'ssh git@github.com',
    'git clone https://user@example.com/x',
    'tool --no-password --verbose',
    'node --test src/token.ts',
  ])('leaves alone: %s', line => expect(redact(line)).toBe(line))

  it('is quick on a long command line', () => {
    const ms = cpuMsDuring(() => {
      for (const part of ['a', 'a-', ' ', '-p ', 'mysql ', 'http://', 'token=', ':@', 'password ']) {
        redact(part.repeat(32_768 / part.length))
      }
    })
    expect(ms).toBeLessThan(3_000)
  })
})

function schemaKeys(schema: unknown, prefix = ''): string[] {
  let { def } = schema as { def: Record<string, unknown> }
  while (def.type === 'optional' || def.type === 'nullable') def = (def.innerType as { def: typeof def }).def
  if (def.type !== 'object') return [prefix.slice(0, -1)]
  return Object.entries(def.shape as object).flatMap(([name, child]) => schemaKeys(child, `${prefix}${name}.`))
}
