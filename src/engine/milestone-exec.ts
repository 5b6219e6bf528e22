/** Whether an execution is one after which a snapshot is due, by the configuration. */
import { commitOf } from '../model/command-kind.ts'
import { milestoneOf } from '../model/milestone.ts'
import { rawFromBytes, rawToText } from '../model/raw-path.ts'
import { quoteCommand } from '../model/shell-quote.ts'
import type { ExecEvent } from '../tracers/trace-event.ts'
import type { Context } from './context.ts'
import { gitEnvOf } from './git-aliases.ts'
import { isOfTarget } from './git-place.ts'

/** What a command was to the run, kept until its process ends. */
export interface Milestone {
  type: 'git' | 'build' | 'test'
  command: string
}

export function milestoneOfExec(ctx: Context, event: ExecEvent, argv: string[]): Milestone | undefined {
  const { triggers } = ctx.config.snapshots
  const commit = triggers.disable_git_commits ? undefined : commitOf(argv, gitEnvOf(event))
  if (commit && isOfTarget(rawFromBytes(ctx.targetPath), event.cwd, commit))
    return { type: 'git', command: quoteCommand(argv) }
  const { build_commands, test_commands } = triggers
  const place = { file: rawToText(event.program), cwd: rawToText(event.cwd) }
  const type = milestoneOf(argv, { buildCommands: build_commands, testCommands: test_commands }, place)
  const isWanted = type === 'build' ? !triggers.disable_builds : !triggers.disable_tests
  return type && isWanted ? { type, command: quoteCommand(argv) } : undefined
}

/** How it ended, in words for the label of its snapshot. */
export function endOf(type: 'build' | 'test', code: number | undefined, signal: string | undefined): string {
  const [good, bad] = type === 'test' ? ['passed', 'failed'] : ['built', 'build failed']
  return code === 0 ? good! : `${bad} (${signal ?? `exit ${code}`})`
}
