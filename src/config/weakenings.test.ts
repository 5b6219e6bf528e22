import { expect, it, test } from 'vitest'
import { defaultConfig, mergeConfig, type PartialConfig } from './config.ts'
import { weakenings } from './weakenings.ts'

const weaker = (part: PartialConfig, base: PartialConfig = {}) => {
  const without = mergeConfig(defaultConfig, base)
  return weakenings(without, mergeConfig(without, part))
}

test.each<[PartialConfig, string]>([
  [{ snapshots: { disabled: true } }, 'snapshots are off'],
  [{ snapshots: { triggers: { disable_pre_run: true } } }, 'pre-run snapshots are off'],
  [{ snapshots: { triggers: { disable_git_commits: true } } }, 'git snapshots are off'],
  [{ snapshots: { triggers: { disable_builds: true } } }, 'build snapshots are off'],
  [{ snapshots: { triggers: { disable_tests: true } } }, 'test snapshots are off'],
  [{ snapshots: { triggers: { disable_idle: true } } }, 'idle snapshots are off'],
  [{ snapshots: { triggers: { disable_guard: true } } }, 'guard snapshots are off'],
  [{ snapshots: { triggers: { disable_interval: true } } }, 'interval snapshots are off'],
  [{ snapshots: { exclude: { additional: ['a'] } } }, '1 extra exclusion'],
  [{ snapshots: { exclude: { additional: ['a', 'b', 'c'] } } }, '3 extra exclusions'],
  [{ snapshots: { exclude: { keep: ['.env', 'x'] } } }, 'keep list is shorter'],
  [{ snapshots: { exclude: { keep: ['.env', '.env.*', '!.env'] } } }, 'keep list is shorter'],
  [{ snapshots: { retention: { delete_initial: true } } }, 'pre-run snapshots may be deleted'],
  [{ snapshots: { retention: { auto_max: 2 } } }, 'retention.auto_max lowered to 2'],
  [{ snapshots: { retention: { manual_max: 2 } } }, 'retention.manual_max lowered to 2'],
  [{ snapshots: { max_file_bytes: 1e6 } }, 'max_file_bytes lowered to 1 MB'],
  [{ snapshots: { min_free_bytes: 0 } }, 'min_free_bytes lowered to 0 B'],
  [{ snapshots: { min_free_bytes: 5e9 } }, 'min_free_bytes raised to 5 GB'],
  [{ snapshots: { min_free_bytes: 2 * 1024 ** 3 } }, 'min_free_bytes raised to 2 GiB'],
  [{ snapshots: { max_store_bytes: 5e9 } }, 'max_store_bytes lowered to 5 GB'],
  [{ snapshots: { auto_interval_seconds: 9000 } }, 'auto_interval_seconds raised to 9,000 seconds'],
  [{ snapshots: { triggers: { idle_threshold_seconds: 60 } } }, 'idle_threshold_seconds raised to 60 seconds'],
  [{ snapshots: { triggers: { guard_max_hold_ms: 0 } } }, 'guard_max_hold_ms lowered to 0'],
  [{ tracing: { disable_exec: true } }, 'command tracing is off'],
  [{ tracing: { tracer: 'none' } }, 'the tracer is none'],
  [{ tracing: { redact: [] } }, 'redact list is shorter'],
])('%j', (part, phrase) => expect(weaker(part)).toEqual([phrase]))

test.each<[PartialConfig, PartialConfig, string]>([
  [
    { snapshots: { triggers: { enable_change: true } } },
    { snapshots: { triggers: { enable_change: false } } },
    'change snapshots are off',
  ],
  [
    { snapshots: { exclude: { ignore_gitignore: true } } },
    { snapshots: { exclude: { ignore_gitignore: false } } },
    'files that git ignores are left out',
  ],
  [
    { snapshots: { triggers: { guard_commands: ['x'] } } },
    { snapshots: { triggers: { guard_commands: [] } } },
    'guard_commands list is shorter',
  ],
  [
    { snapshots: { max_store_bytes: 1e9 } },
    { snapshots: { max_store_bytes: Number.POSITIVE_INFINITY } },
    'max_store_bytes raised to unlimited',
  ],
])('over %j: %j', (base, part, phrase) => expect(weaker(part, base)).toEqual([phrase]))

it('is silent about what the store keeps in any case', () => {
  expect(weaker({ snapshots: { retention: { max_count: 1, native_max: 1 } } })).toEqual([])
})

it('is silent about what protects more, or the same', () => {
  const additional = ['dist']
  const stronger: PartialConfig = {
    snapshots: {
      triggers: { enable_change: true, guard_commands: ['x'], idle_threshold_seconds: 5 },
      exclude: { ignore_gitignore: true, additional, keep: ['.env', '.env.*', 'secrets'] },
      retention: { auto_max: 100 },
      max_file_bytes: Number.POSITIVE_INFINITY,
    },
  }
  expect(weaker(stronger, { snapshots: { exclude: { additional } } })).toEqual([])
  expect(weaker({ snapshots: { disabled: true } }, { snapshots: { disabled: true } })).toEqual([])
})
