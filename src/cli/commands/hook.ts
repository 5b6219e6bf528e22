import type { Command } from 'commander'
import { asSavepointError } from '../../api/as-savepoint-error.ts'
import { SavepointError } from '../../errors/errors.ts'
import type { Savepoint } from '../../index.ts'
import type { Context } from '../context.ts'
import { define, handle } from '../define.ts'
import { reportError } from '../report-error.ts'
import { wrongUsage } from '../usage.ts'

/** Claude Code takes 2 for "stop the agent": whatever goes wrong here must not do that, but the user is to see it. */
const SHOWN_TO_THE_USER = 1

export function register(program: Command): void {
  define(program, {
    name: 'hook',
    group: 'more',
    summary: 'answer the hook of an agent: a snapshot per turn',
    description:
      'Is called by an agent, with an event on standard input: `savepoint connect claude` registers it. When a prompt is submitted, and when ' +
      'something changed before or after a tool or at the end of the turn, it takes a snapshot of type `turn`, which says session, turn and tool. ' +
      'It prints nothing, and never stops the agent: what goes wrong is exit code 1.',
    usage: 'claude',
    examples: [['hook claude', 'as the settings of Claude Code have it']],
  })
    .argument('[words...]', 'the agent')
    .action(
      handle(async (context, { words }) => {
        try {
          if (words.length !== 1 || words[0] !== 'claude') throw wrongUsage('hook', 'the agent is "claude"')
          await answer(context)
        } catch (thrown) {
          if (asSavepointError(thrown).code === 'snapshots.disabled') return 0
          process.stderr.write(reportError(thrown, context.options.json).text)
          return SHOWN_TO_THE_USER
        }
      }),
    )
}

async function answer(context: Context): Promise<void> {
  const { labelOf, parseHookEvent, turnOf } = await import('../connect/hook-event.ts')
  const event = explained(await standardInput(), parseHookEvent)
  if (!event) return
  // Where the project begins; the agent may stand deeper by now.
  const cwd = process.env.CLAUDE_PROJECT_DIR || event.cwd
  const savepoint = await context
    .open({ create: true, ...(cwd === undefined ? {} : { cwd }) })
    .catch((error: unknown) => unlessSaid(error, event.kind === 'UserPromptSubmit'))
  if (!savepoint) return
  const snapshots = savepoint.snapshots()
  const isPrompt = event.kind === 'UserPromptSubmit'
  const isNews = isPrompt || snapshots.length === 0 || (await hasChanged(savepoint))
  if (!isNews) return
  const turn = turnOf(event, snapshots)
  // Hooks of tools that worked side by side all see the same changes: one of them keeps them.
  await savepoint.snapshot({ type: 'turn', label: labelOf(turn), turn, onlyIfChanged: !isPrompt })
}

/** Where the last snapshot cannot be compared with, because its filesystem is away or it is not read yet, nobody can tell: then it is kept. */
async function hasChanged(savepoint: Pick<Savepoint, 'changes'>): Promise<boolean> {
  try {
    return (await savepoint.changes()).changes.length > 0
  } catch (error) {
    if (asSavepointError(error).code === 'backend.failed') return true
    throw error
  }
}

/** That a place cannot be protected (the user's home) is said once per turn. */
function unlessSaid(thrown: unknown, isFirst: boolean): undefined {
  if (isFirst || asSavepointError(thrown).code !== 'target.refused') throw thrown
}

async function standardInput(): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

function explained<T>(text: string, parse: (text: string) => T): T {
  try {
    return parse(text)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    throw new SavepointError('usage', `Cannot read the event on standard input: ${error.message}`, {
      hint: 'An agent calls this: `savepoint connect claude` tells it to',
      cause: error,
    })
  }
}
