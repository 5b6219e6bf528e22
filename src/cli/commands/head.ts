import type { Command } from 'commander'
import { snapshotJson } from '../../api/json.ts'
import { formatAge } from '../../model/format.ts'
import { define, handle } from '../define.ts'
import { deltaText, titleOf } from '../render/snapshot.ts'

export function register(program: Command): void {
  define(program, {
    name: 'head',
    group: 'organise',
    summary: 'print the snapshot of the live files',
    description: 'Prints HEAD: the snapshot that the live files descend from, and the parent of the next one.',
    examples: [
      ['head', 'with its age and label'],
      ['head -q', 'only its id'],
    ],
  }).action(
    handle(async context => {
      const savepoint = await context.list()
      const head = savepoint.head()
      if (context.options.json) {
        const tags = [...savepoint.tags()].filter(([, id]) => id === head.id).map(([name]) => name)
        return context.json(snapshotJson(head, { tags, head: true }))
      }
      if (context.options.quiet) return context.line(head.id)
      const parts = [
        head.id,
        head.type,
        formatAge(context.now - head.createdAt),
        deltaText(head),
        titleOf(head, context.style),
      ]
      context.line(parts.join('  ').trimEnd())
    }),
  )
}
