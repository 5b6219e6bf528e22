import { describe, expect, it, test } from 'vitest'
import { cpuMsDuring } from '../../test/support/cpu-time.ts'
import type { SavepointError } from '../errors/errors.ts'
import type { PartialConfig } from './config.ts'
import { parseConfig } from './parse-config.ts'

function failureOf(text: string): SavepointError {
  try {
    parseConfig('f.yaml', text)
  } catch (error) {
    expect(error).toMatchObject({ name: 'SavepointError', code: 'config.invalid', exitCode: 2 })
    return error as SavepointError
  }
  throw new Error('the text was accepted')
}

describe('every key', () => {
  test.each<[text: string, expected: PartialConfig]>([
    ['snapshots: {disabled: true}', { snapshots: { disabled: true } }],
    ...['auto', 'cas', 'btrfs', 'zfs', 'apfs', 'tmutil', 'archive'].map(
      backend => [`snapshots: {backend: ${backend}}`, { snapshots: { backend } }] as [string, PartialConfig],
    ),
    ...[
      'disable_pre_run',
      'disable_git_commits',
      'disable_builds',
      'disable_tests',
      'disable_idle',
      'disable_guard',
      'disable_interval',
      'enable_change',
    ].map(
      key =>
        [`snapshots: {triggers: {${key}: true}}`, { snapshots: { triggers: { [key]: true } } }] as [
          string,
          PartialConfig,
        ],
    ),
    [
      'snapshots: {triggers: {idle_threshold_seconds: 5, guard_max_hold_ms: 0}}',
      { snapshots: { triggers: { idle_threshold_seconds: 5, guard_max_hold_ms: 0 } } },
    ],
    [
      'snapshots: {triggers: {build_commands: [b], test_commands: [t], guard_commands: ["g h"]}}',
      { snapshots: { triggers: { build_commands: ['b'], test_commands: ['t'], guard_commands: ['g h'] } } },
    ],
    [
      'snapshots: {exclude: {ignore_gitignore: true, additional: [dist, "*.log"], keep: []}}',
      { snapshots: { exclude: { ignore_gitignore: true, additional: ['dist', '*.log'], keep: [] } } },
    ],
    [
      'snapshots: {retention: {max_count: 3, delete_initial: true, auto_max: unlimited, manual_max: 7}}',
      {
        snapshots: {
          retention: { max_count: 3, delete_initial: true, auto_max: Number.POSITIVE_INFINITY, manual_max: 7 },
        },
      },
    ],
    [
      'snapshots: {auto_interval_seconds: 60, max_file_bytes: 5 GiB, min_free_bytes: 0, max_store_bytes: 200gb}',
      {
        snapshots: {
          auto_interval_seconds: 60,
          max_file_bytes: 5 * 1024 ** 3,
          min_free_bytes: 0,
          max_store_bytes: 2e11,
        },
      },
    ],
    [
      'tracing: {disable_exec: true, tracer: ptrace, redact: ["a+"]}',
      { tracing: { disable_exec: true, tracer: 'ptrace', redact: ['a+'] } },
    ],
  ])('%s', (text, expected) => expect(parseConfig('f', text)).toEqual(expected))

  test.each(['', '\n', '# nothing\n', '---\n', '{}', 'snapshots:\n', 'snapshots:\n  exclude:\n'])(
    '%j sets nothing',
    text => expect(JSON.stringify(parseConfig('f', text))).toMatch(/^\{("snapshots":\{("exclude":\{\})?\})?\}$|^\{\}$/),
  )

  it('follows aliases and Windows line ends', () => {
    expect(parseConfig('f', 'snapshots:\r\n  exclude:\r\n    keep: &k [x]\r\n    additional: *k\r\n')).toEqual({
      snapshots: { exclude: { keep: ['x'], additional: ['x'] } },
    })
  })
})

describe('unknown keys', () => {
  test.each([
    [
      'snapshots:\n  disabeld: true\n',
      '2:3',
      '"disabeld" is not a key of snapshots',
      'Did you mean snapshots.disabled?',
    ],
    ['# c\n\nsnapshot:\n  disabled: true\n', '3:1', '"snapshot" is not a key', 'Did you mean snapshots?'],
    ['auto_max: 3\n', '1:1', '"auto_max" is not a key', 'Did you mean snapshots.retention.auto_max?'],
    ['exclude:\n  keep: []\n', '1:1', '"exclude" is not a key', 'Did you mean snapshots.exclude?'],
    [
      'snapshots:\n  disable_guard: true\n',
      '2:3',
      '"disable_guard" is not a key of snapshots',
      'Did you mean snapshots.triggers.disable_guard?',
    ],
    [
      'snapshots:\n  maxFileBytes: 1\n',
      '2:3',
      '"maxFileBytes" is not a key of snapshots',
      'Did you mean snapshots.max_file_bytes?',
    ],
    ['redcat: []\n', '1:1', '"redcat" is not a key', 'Did you mean tracing.redact?'],
    [
      'snapshots.disabled: true\n',
      '1:1',
      '"snapshots.disabled" is not a key',
      'Did you mean snapshots.disabled? Each dot is a level: snapshots: { disabled: … }.',
    ],
    ['frobnicate: 1\n', '1:1', '"frobnicate" is not a key', 'Known here: snapshots, tracing.'],
    ['snapshots: {}\n1: x\n', '2:1', '"1" is not a key', 'Known here: snapshots, tracing.'],
    ['__proto__:\n  disabled: true\n', '1:1', '"__proto__" is not a key', 'Known here: snapshots, tracing.'],
    ['<<: {snapshots: {}}\n', '1:1', '"<<" is not a key', 'Known here: snapshots, tracing.'],
  ])('%j', (text, place, what, hint) => {
    const error = failureOf(text)
    expect(error.message).toBe(`Cannot use f.yaml:${place}: ${what}`)
    expect(error.hint).toBe(hint)
  })

  it('never shows characters that steer a terminal', () => {
    const { message } = failureOf('"\\e[31mred\\u202e": 1\n')
    expect(message).toBe('Cannot use f.yaml:1:1: "\\u001b[31mred\\u{202e}" is not a key')
  })
})

describe('wrong values', () => {
  test.each([
    ['disabled: yes', 'snapshots.disabled must be true or false, but is "yes"', 'Write disabled: true.'],
    ['disabled: tr', 'snapshots.disabled must be true or false, but is "tr"', 'Write disabled: true.'],
    [
      'disabled:',
      'snapshots.disabled must be true or false, but is empty',
      'Give snapshots.disabled a value, or remove the line.',
    ],
    [
      'backend: brtfs',
      'snapshots.backend must be one of auto, cas, btrfs, zfs, apfs, tmutil, archive, but is "brtfs"',
      'Write backend: btrfs.',
    ],
    ['max_file_bytes: lots', /must be a size such as 500 MB, 5 GiB or unlimited, but is "lots"$/, /f.yaml:2:3/],
    ['max_file_bytes: 0', /must be more than nothing, but is 0$/, /f.yaml:2:3/],
    ['max_file_bytes: -1', /must not be negative, but is -1$/, /f.yaml:2:3/],
    ['max_file_bytes: [1]', /must be a size such as 500 MB or 5 GiB, but is a list$/, /f.yaml:2:3/],
    ['min_free_bytes: unlimited', /must be a definite size, but is "unlimited"$/, /f.yaml:2:3/],
    ['auto_interval_seconds: 1.5', /must be a whole number of seconds, at least 1, but is 1.5$/, /f.yaml:2:3/],
    ['retention: {auto_max: 0}', /auto_max must be a whole number of at least 1, or unlimited, but is 0$/, /2:15/],
    ['retention: none', /snapshots.retention must be a section with keys, but is "none"$/, /^Known here: max_count/],
    ['exclude: {keep: .env}', /keep must be a list, but is ".env"$/, 'Write keep: [".env"].'],
    ['exclude: {keep: [ok, 3]}', /item 2 of snapshots.exclude.keep must be text, but is 3$/, /f.yaml:2:24/],
    ['exclude: {keep: [""]}', /item 1 of snapshots.exclude.keep must not be empty, but is ""$/, /f.yaml:2:20/],
  ])('%s', (line, what, hint) => {
    const error = failureOf(`snapshots:\n  ${line}\n`)
    expect(error.message).toMatch(/^Cannot use f\.yaml:2:\d+: /)
    if (typeof what === 'string') expect(error.message).toBe(`Cannot use f.yaml:2:3: ${what}`)
    else expect(error.message).toMatch(what)
    expect(error.hint).toMatch(hint)
  })

  test.each([
    ['("', /item 1 of tracing.redact must be a regular expression \(/],
    ['a*"', /item 1 of tracing.redact must match some text, not the empty text/],
    ['(?:a||){60}(?=x)"', /tracing.redact must not take seconds to match the empty text, but is a list/],
  ])('redact: ["%s]', (pattern, what) => expect(failureOf(`tracing:\n  redact: ["${pattern}]\n`).message).toMatch(what))

  it('lists every problem in the order of the file', () => {
    const error = failureOf('tracing:\n  tracer: ptrce\nsnapshots:\n  disabled: 1\n  bakend: cas\n')
    expect(error.message.split('\n')).toEqual([
      'Cannot use f.yaml:2:3: tracing.tracer must be one of auto, seccomp, ptrace, ebpf, eslogger, none, but is "ptrce"',
      'f.yaml:4:3: snapshots.disabled must be true or false, but is 1',
      'f.yaml:5:3: "bakend" is not a key of snapshots',
    ])
    expect(error.hint).toBe('Write tracer: ptrace. Did you mean snapshots.backend?')
    expect(error.data).toMatchObject({ file: 'f.yaml', problems: [{ line: 2, column: 3 }, { line: 4 }, { line: 5 }] })
  })
})

describe('broken YAML', () => {
  const bomb = 'abcdefgh'
    .split('')
    .map((name, level) => `${name}: &${name} [${Array(9).fill(level ? `*${'abcdefgh'[level - 1]}` : 'x')}]`)
    .join('\n')

  test.each([
    ['a list', '# c\n- a\n', '2:1: the file holds a list where keys belong'],
    ['a lone word', 'snapsh', '1:1: the file holds the text "snapsh" where keys belong'],
    ['a half-written key', 'snapshots:\n  disabl', '1:1: snapshots must be a section with keys, but is "disabl"'],
    ['a half-written list', 'snapshots:\n  exclude:\n    keep: [a, b', '3:16: this is not YAML: '],
    ['a half-written string', 'snapshots:\n  backend: "ca', '2:15: this is not YAML: missing closing "quote'],
    ['a tab', 'snapshots:\n\tdisabled: true\n', '2:1: a tab indents this line'],
    [
      'a duplicate',
      'snapshots:\n  disabled: true\n  disabled: no\n',
      '3:3: the key "disabled" is written twice: first on line 2',
    ],
    ['two documents', 'snapshots: {}\n---\ntracing: {}\n', '2:1: a second document begins here'],
    ['an alias bomb', bomb, '1:1: its aliases expand to too much'],
    ['many aliases', `a: &a x\nb: [${Array(101).fill('*a')}]`, '2:305: there are more than 100 aliases'],
    ['an alias without anchor', 'snapshots: *nope\n', '1:12: the alias "*nope" has no anchor'],
    ['a loop', 'snapshots: &a\n  snapshots: *a\n', '2:3: "snapshots" is not a key of snapshots'],
    ['a tag', 'snapshots: !foo {}\n', '1:12: this value has a tag'],
    ['binary data', 'snapshots: !!binary aGVsbG8=\n', '1:12: this value has a tag'],
    ['a list as key', '? [a, b]\n: 2\n', '1:3: this is no key'],
    ['deep nesting', '['.repeat(20_000), 'it is nested too deeply'],
  ])('%s', (_, text, what) => {
    const error = failureOf(text)
    expect(error.message).toContain(what)
    expect(error.hint).toBeTruthy()
  })

  it('stays quick and short on a file of nothing but mistakes', () => {
    let message = ''
    const ms = cpuMsDuring(() => {
      message = failureOf(Array.from({ length: 50_000 }, (_, index) => `k${index}: 1`).join('\n')).message
    })
    expect(message.split('\n')).toHaveLength(11)
    expect(message).toMatch(/\nand more$/)
    expect(ms).toBeLessThan(10_000)
  })
})
