import type { Command } from 'commander'
import { operationJson } from '../../api/json.ts'
import { formatAge } from '../../model/format.ts'
import { define, handle } from '../define.ts'
import { titleOf } from '../render/snapshot.ts'
import { renderTable } from '../table.ts'
import { showText } from '../text.ts'
import { wrongUsage } from '../usage.ts'

export function register(program: Command): void {
  define(program, {
    name: 'tag',
    group: 'organise',
    summary: 'name a snapshot, or list the names',
    description:
      'Gives a snapshot (HEAD when none is named) a name that can be used in its place. Retention never removes a tagged ' +
      'snapshot. Without arguments it lists the tags. Moving or deleting a tag can be undone.',
    usage: '[NAME [SNAP]] [--delete]',
    examples: [
      ['tag', 'list tags'],
      ['tag good', 'name HEAD'],
      ['tag good snap_k3m9x2ab', 'name that snapshot, or move the name there'],
      ['tag --delete good', 'forget the name; the snapshot stays'],
    ],
  })
    .argument('[name]', 'the tag')
    .argument('[snapshot]', 'what it names (default: HEAD)')
    .option('-d, --delete', 'delete the tag')
    .action(
      handle<{ delete?: boolean }>(async (context, { words: [name, ref], options }) => {
        if (options.delete && (name === undefined || ref !== undefined))
          throw wrongUsage('tag', '--delete takes the name of one tag')
        const savepoint = await context.open()
        if (name !== undefined) {
          const operation = options.delete ? savepoint.deleteTag(name) : savepoint.tag(name, ref)
          if (context.options.json) return context.json(operation ? operationJson(operation) : null)
          if (context.options.quiet) return
          const id = savepoint.tags().get(name)
          if (!operation) return context.line(`${id} is tagged ${showText(name)} already`)
          const former = operation.detail.before as string | null
          if (options.delete) context.line(`Deleted tag ${showText(name)}`)
          else if (former !== null) context.line(`Moved tag ${showText(name)} from ${former} to ${id}`)
          else context.line(`Tagged ${id} as ${showText(name)}`)
          return context.line(`To undo: ${context.style.bold(context.style.wayBack('undo', []))}`)
        }
        const tags = [...savepoint.tags()].sort(([a], [b]) => (a < b ? -1 : 1))
        if (context.options.json) return context.json(tags.map(([tag, snapshot]) => ({ name: tag, snapshot })))
        if (context.options.quiet) return context.lines(tags.map(([tag]) => tag))
        if (tags.length === 0) return context.line(`No tags yet. Name HEAD: ${context.style.command('tag NAME')}`)
        const rows = tags.map(([tag, id]) => {
          const snapshot = savepoint.find(id)
          return [showText(tag), id, formatAge(context.now - snapshot.createdAt), titleOf(snapshot, context.style)]
        })
        const columns = [{ title: 'TAG' }, { title: 'SNAPSHOT' }, { title: 'CREATED' }, { title: 'LABEL' }]
        context.output.write(renderTable(columns, rows, context.style))
      }),
    )
}
