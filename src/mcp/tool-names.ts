/** What the engine says names commands of the command line; a model has tools. */
import { tools } from './tools.ts'

/** Of commands that have no tool of their own, or another one than their name says. */
const otherNames: [command: RegExp, name: string][] = [
  [/^tag$/, 'snapshots_log'],
  [/^tag --delete (.+)$/, 'snapshots_tag {name: "$1", delete: true}'],
  // Inside of a run, where this is said, it is kept running anyway.
  [/^rollback ((?:snap|run)_\w+)(?: --keep-running)?$/, 'snapshots_rollback {checkpoint: "$1"}'],
  [/^(show|delete) (snap_\w+)$/, 'snapshots_$1 {checkpoint: "$2"}'],
  [/^undo --all$/, 'snapshots_undo {all: true}'],
  [/^snapshot --label (".+")$/, 'snapshots_create {name: $1}'],
  [/^status$/, 'snapshots_changes'],
  [/^operations$/, 'the resource savepoint://events?kind=operation'],
  [/^runs$/, 'the list of resources (savepoint://runs/…)'],
]

/** No tool does that: whoever took one for it would be refused again. */
const onlyByCommand = / --(force|to|no-safety)\b| -t DIR\b|` in another terminal$/

/** A text with tools in the place of commands, where there is one that does the same. */
export const withToolNames = (text: string): string =>
  text.replace(/`savepoint (([a-z]+)[^`]*)`(?: in another terminal)?/g, (whole, command: string, verb: string) => {
    if (onlyByCommand.test(whole)) return whole
    const [pattern, name] = otherNames.find(([pattern]) => pattern.test(command)) ?? []
    if (pattern && name) return command.replace(pattern, name)
    return tools.find(tool => tool.operation === verb)?.name ?? whole
  })
