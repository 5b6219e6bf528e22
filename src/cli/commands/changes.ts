import type { Command } from 'commander'
import { diffJson } from '../../api/json.ts'
import { changesLegend } from '../../model/change-letters.ts'
import { define, handle } from '../define.ts'
import { changeLine } from '../render/changes.ts'

export function register(program: Command): void {
  define(program, {
    name: 'changes',
    group: 'look',
    summary: 'list the paths that changed since HEAD',
    description: `Lists every path that differs from the snapshot which the live files descend from.\n${changesLegend}.`,
    examples: [
      ['changes', 'paths with their sizes'],
      ['diff', 'the same with contents'],
    ],
  }).action(
    handle(async context => {
      const { withRenames } = await import('../render/diff.ts')
      const changes = withRenames(await (await context.look()).changes())
      if (context.options.json) return context.json(diffJson(changes))
      if (context.options.quiet) return context.lines(changes.changes.map(({ path }) => context.style.path(path)))
      if (changes.changes.length === 0) return context.line(`Nothing changed since ${changes.from}`)
      await context.paged(output =>
        output.write(changes.changes.map(change => `${changeLine(change, context.style, 'sizes')}\n`).join('')),
      )
    }),
  )
}
