import type { Command } from 'commander'
import { diffJson, fileJson, snapshotDetailJson } from '../../api/json.ts'
import { showPath } from '../../model/raw-path.ts'
import { UNREAD_ROOT } from '../../model/snapshot.ts'
import { define, handle } from '../define.ts'
import { snapshotDetails } from '../render/details.ts'
import { missingText } from '../render/snapshot.ts'

interface Options {
  stat?: boolean
  patch?: boolean
}

export function register(program: Command): void {
  define(program, {
    name: 'show',
    group: 'look',
    summary: 'show one snapshot, or a file as it was in it',
    description:
      'Shows a snapshot: when, why and how large it is, what it left out, and what changed against its parent. With PATH ' +
      'it writes the content of that file as it was in the snapshot to stdout, byte for byte; with --json also what else is ' +
      'known of it, and the content as text, or in base64 where it is not UTF-8.',
    usage: '[SNAP] [PATH]',
    examples: [
      ['show', 'the snapshot that the live files descend from'],
      ['show snap_k3m9x2ab --stat', 'with a count of changed lines'],
      ['show "before the refactoring" -p', 'by its label, with the changes as a patch'],
      ['show snap_k3m9x2ab src/app.ts > old.ts', 'an old version of a file'],
    ],
  })
    .argument('[snapshot]', 'id, prefix, tag or label', 'HEAD')
    .argument('[path]', 'a file in it')
    .option('--stat', 'count changed lines per file')
    .option('-p, --patch', 'show the changes as a patch')
    .action(
      handle<Options>(async (context, { words: [ref = 'HEAD', path], options }) => {
        const savepoint = await context.look()
        if (path !== undefined) {
          const version = savepoint.file(ref, path)
          if (context.options.json) return context.json(fileJson(version))
          context.output.write(version.content)
          return context.output.drained()
        }
        const { id } = savepoint.find(ref)
        const node = savepoint.log().find(({ snapshot }) => snapshot.id === id)
        const snapshot = node?.snapshot ?? savepoint.find(ref)
        const isKnown = snapshot.parent !== undefined && snapshot.root !== UNREAD_ROOT
        const diff = isKnown ? savepoint.snapshotChanges(id) : undefined
        const mounts = savepoint.mountsIn(id)
        const { forPeople, linesOf, statText, withRenames, writeUnified } = await import('../render/diff.ts')
        if (context.options.json) {
          const place = { tags: node?.tags, head: node?.isHead }
          const joined = diff && withRenames(diff)
          const changes = joined && diffJson(joined, options.stat ? linesOf(joined) : undefined).changes
          const detail = { ...snapshotDetailJson(snapshot, place), mounts: mounts.map(showPath) }
          return context.json({ ...detail, changes: changes ?? null })
        }
        const { changeLine } = await import('../render/changes.ts')
        const colour = context.style.on
        const shown = diff && forPeople(context, diff, false)
        await context.paged(async output => {
          output.write(snapshotDetails(snapshot, node, savepoint.nativeUsage(id), context.now, context.style))
          output.write(
            missingText(
              mounts.map(path => ({ path, reason: 'mount' })),
              context.style,
            ),
          )
          if (!shown) return
          output.write('\n')
          if (options.stat) output.write(statText(shown, context.width, colour))
          if (options.patch) await writeUnified(shown, output, 3, colour)
          if (!options.stat && !options.patch) {
            output.write(shown.changes.map(change => `  ${changeLine(change, context.style, 'sizes')}\n`).join(''))
          }
        })
      }),
    )
}
