/** What a repository's savepoint.yaml takes away from the protection, in words for one line at the start of a run. */
import { formatCount, formatLimit, plural } from '../model/format.ts'
import type { Config } from './config.ts'

/** One phrase for each way in which `actual` protects less than `without` (the same sources but the repository's). */
export function weakenings(without: Config, actual: Config): string[] {
  const phrases: string[] = []
  const say = (weaker: boolean, phrase: string) => weaker && phrases.push(phrase)
  const [before, after] = [without.snapshots, actual.snapshots]
  say(after.disabled && !before.disabled, 'snapshots are off')
  for (const [key, kind] of triggerKinds) {
    say(after.triggers[key] && !before.triggers[key], `${kind} snapshots are off`)
  }
  say(before.triggers.enable_change && !after.triggers.enable_change, 'change snapshots are off')
  const extra = missingFrom(before.exclude.additional, after.exclude.additional)
  say(extra.length > 0, plural('extra exclusion', extra.length))
  const kept = (list: string[]) => list.filter(pattern => !pattern.startsWith('!'))
  const keepShrank =
    missingFrom(after.exclude.keep, kept(before.exclude.keep)).length > 0 ||
    missingFrom(before.exclude.keep, after.exclude.keep).some(pattern => pattern.startsWith('!'))
  say(keepShrank, 'keep list is shorter')
  say(before.exclude.ignore_gitignore && !after.exclude.ignore_gitignore, 'files that git ignores are left out')
  say(after.retention.delete_initial && !before.retention.delete_initial, 'pre-run snapshots may be deleted')
  for (const list of ['build_commands', 'test_commands', 'guard_commands'] as const) {
    say(missingFrom(after.triggers[list], before.triggers[list]).length > 0, `${list} list is shorter`)
  }
  phrases.push(...weakerLimits(before, after))
  say(actual.tracing.disable_exec && !without.tracing.disable_exec, 'command tracing is off')
  say(actual.tracing.tracer === 'none' && without.tracing.tracer !== 'none', 'the tracer is none')
  say(missingFrom(actual.tracing.redact, without.tracing.redact).length > 0, 'redact list is shorter')
  return phrases
}

const triggerKinds = [
  ['disable_pre_run', 'pre-run'],
  ['disable_git_commits', 'git'],
  ['disable_builds', 'build'],
  ['disable_tests', 'test'],
  ['disable_idle', 'idle'],
  ['disable_guard', 'guard'],
  ['disable_interval', 'interval'],
] as const

interface Limit {
  name: string
  read(snapshots: Config['snapshots']): number
  /** Which change protects less; both where the limit guards the disk as well. */
  weaker: ('lowered' | 'raised')[]
  show(value: number): string
}

const showSeconds = (value: number) => plural('second', value)
const limits: Limit[] = [
  { name: 'max_file_bytes', read: s => s.max_file_bytes, weaker: ['lowered'], show: formatLimit },
  { name: 'min_free_bytes', read: s => s.min_free_bytes, weaker: ['lowered', 'raised'], show: formatLimit },
  { name: 'max_store_bytes', read: s => s.max_store_bytes, weaker: ['lowered', 'raised'], show: formatLimit },
  { name: 'retention.auto_max', read: s => s.retention.auto_max, weaker: ['lowered'], show: formatCount },
  { name: 'retention.manual_max', read: s => s.retention.manual_max, weaker: ['lowered'], show: formatCount },
  { name: 'auto_interval_seconds', read: s => s.auto_interval_seconds, weaker: ['raised'], show: showSeconds },
  {
    name: 'idle_threshold_seconds',
    read: s => s.triggers.idle_threshold_seconds,
    weaker: ['raised'],
    show: showSeconds,
  },
  { name: 'guard_max_hold_ms', read: s => s.triggers.guard_max_hold_ms, weaker: ['lowered'], show: formatCount },
]

function weakerLimits(before: Config['snapshots'], after: Config['snapshots']): string[] {
  return limits.flatMap(({ name, read, weaker, show }) => {
    const [was, is] = [read(before), read(after)]
    const direction = is < was ? 'lowered' : 'raised'
    return is !== was && weaker.includes(direction) ? [`${name} ${direction} to ${show(is)}`] : []
  })
}

/** The items of `list` that `other` lacks. */
function missingFrom(other: string[], list: string[]): string[] {
  return list.filter(item => !other.includes(item))
}
