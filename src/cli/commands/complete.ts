import type { Command } from 'commander'
import { formatAge } from '../../model/format.ts'
import { quoteCommand } from '../../model/shell-quote.ts'
import { type Candidate, type CompletionPlan, fitting, planCompletion } from '../completion-plan.ts'
import type { Context } from '../context.ts'
import { define, handle } from '../define.ts'
import { shorten, showText } from '../text.ts'

const listed = 200
const descriptionChars = 60

/** For the scripts of `completion`: never an error, never a wait for a lock. */
export function register(program: Command): void {
  define(program, {
    name: '__complete',
    group: 'more',
    summary: '',
    description: 'Lists what can stand at the last of WORDS; completion scripts call it.',
    examples: [],
    hidden: true,
  })
    .argument('[words...]')
    .passThroughOptions()
    .action(
      handle(async (context, { words }) => {
        const plan = planCompletion(program, words)
        const names = plan.names.length > 0 ? await namesOf(context, plan).catch(() => []) : []
        for (const { value, description } of [...plan.candidates, ...fitting(names, plan.typed).slice(0, listed)]) {
          context.line(description ? `${value}\t${shorten(showText(description), descriptionChars)}` : value)
        }
        if (plan.shell) context.line(`:${plan.shell}`)
      }),
    )
}

async function namesOf(context: Context, plan: CompletionPlan): Promise<Candidate[]> {
  const engine = await import('../../index.ts')
  const { target, home } = context.options
  const savepoint = await engine.open({ target, home })
  try {
    const age = (ms: number) => formatAge(context.now - ms)
    const names: Candidate[] = []
    if (plan.names.includes('tags'))
      for (const [tag, id] of savepoint.tags()) names.push({ value: tag, description: `tag of ${id}` })
    if (plan.names.includes('snapshots')) {
      names.push({ value: 'HEAD', description: 'what the live files descend from' })
      for (const { id, type, label, createdAt } of savepoint.snapshots().toReversed()) {
        names.push({ value: id, description: `${type}, ${age(createdAt)}${label === undefined ? '' : `: ${label}`}` })
        // Where nothing is typed, an id is enough; a label is found by its first letters.
        if (label !== undefined && plan.typed !== '') names.push({ value: label, description: `label of ${id}` })
      }
    }
    if (plan.names.includes('runs')) {
      for (const run of savepoint.runs().toReversed()) {
        names.push({ value: run.id, description: `${age(run.startedAt)}: ${quoteCommand(run.command)}` })
      }
    }
    // A control character in a name would break the protocol of lines.
    return names.filter(({ value }) => showText(value) === value)
  } finally {
    savepoint.close()
  }
}
