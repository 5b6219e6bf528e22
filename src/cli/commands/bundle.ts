import { resolve } from 'node:path'
import type { Command } from 'commander'
import type { Bundle } from '../../record/index.ts'
import type { DiffOptions } from '../bundle/diff.ts'
import type { RestoreOptions } from '../bundle/restore.ts'
import type { ShowOptions } from '../bundle/show.ts'
import type { Context } from '../context.ts'
import { define, handle } from '../define.ts'
import { wrongUsage } from '../usage.ts'

type Options = ShowOptions & DiffOptions & RestoreOptions

/** Which options each word takes, and what it does. */
const actions: Record<
  string,
  { takes: string[]; run(context: Context, bundle: Bundle, options: Options): Promise<number | undefined> }
> = {
  show: {
    takes: ['tree', 'changed'],
    run: async (context, bundle, options) => {
      await (await import('../bundle/show.ts')).showBundle(context, bundle, options)
      return 0
    },
  },
  diff: {
    takes: ['stat', 'nameOnly'],
    run: async (context, bundle, options) => {
      await (await import('../bundle/diff.ts')).diffBundle(context, bundle, options)
      return 0
    },
  },
  verify: {
    takes: [],
    run: async (context, bundle) => (await import('../bundle/verify.ts')).verifyBundleWords(context, bundle),
  },
  restore: {
    takes: ['before', 'after', 'to', 'inPlace', 'anywhere', 'dryRun', 'withGit', 'force', 'yes'],
    run: async (context, bundle, options) =>
      (await import('../bundle/restore.ts')).restoreWords(context, bundle, options),
  },
  import: {
    takes: ['withGit'],
    run: async (context, bundle, options) =>
      (await import('../bundle/import.ts')).importWords(context, bundle, options),
  },
}
const common = new Set(['target', 'adopt', 'home', 'json', 'quiet', 'color', 'pager'])

export function register(program: Command): void {
  define(program, {
    name: 'bundle',
    group: 'more',
    summary: 'look at, check and restore what `record` wrote',
    description:
      'Works with a bundle, the directory that `savepoint record` writes. `show` lists its paths, `diff` prints the changes as a patch, ' +
      '`verify` compares every content with its hash. `restore` brings back the state after the command, or with --before the one before it, ' +
      'which undoes it: into a directory of its own with --to, under the absolute paths; or with --in-place where it was, below the directory ' +
      'that the command started in. Then it shows what it will do and asks; what was edited since is left alone (exit code 3), and what is ' +
      'replaced is kept in a second bundle, which takes it back. What lies in .git is in no bundle, and stays as it is. `import` makes two ' +
      'snapshots of it, before and after. A bundle is not trusted: what makes no sense in it is refused (exit code 14).',
    usage: 'show|diff|verify|restore|import BUNDLE [options]',
    examples: [
      ['bundle show --changed build.bundle', 'what changed'],
      ['bundle show --tree build.bundle', 'everything, as a tree'],
      ['bundle diff build.bundle', 'as a patch'],
      ['bundle verify build.bundle', 'is everything there, and unharmed?'],
      ['bundle restore --before --in-place build.bundle', 'undo what the command did'],
      ['bundle restore --to /tmp/x build.bundle', 'what it read and wrote, elsewhere'],
      ['bundle import build.bundle', 'as two snapshots'],
    ],
    cancellable: true,
  })
    .argument('<what>', Object.keys(actions).join(', '))
    .argument('<bundle>', 'the directory')
    .option('--tree', 'show: as a tree')
    .option('--changed', 'show: only what changed')
    .option('--stat', 'diff: count changed lines per file')
    .option('--name-only', 'diff: only the names of changed files')
    .option('--before', 'restore: the state before the command')
    .option('--after', 'restore: the state after it (the default)')
    .option('--to <dir>', 'restore: into this directory, which must be empty or not exist')
    .option('--in-place', 'restore: where it was')
    .option('--anywhere', 'restore --in-place: also outside of where the command started')
    .option('--dry-run', 'restore: only say what would be done')
    .option('--force', 'restore --in-place: also what was edited since')
    .option('-y, --yes', 'restore --in-place: do not ask')
    .option('--with-git', 'restore, import: take what only git has from the repository')
    .action(
      handle<Options>(async (context, { words: [what, directory], options }) => {
        const action = Object.hasOwn(actions, what!) ? actions[what!]! : undefined
        if (!action) throw wrongUsage('bundle', `"${what}" is none of ${Object.keys(actions).join(', ')}`)
        const stray = Object.keys(options).find(name => !common.has(name) && !action.takes.includes(name))
        if (stray)
          throw wrongUsage(
            'bundle',
            `${what} takes no --${stray.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)}`,
          )
        const { Bundle } = await import('../../record/index.ts')
        const bundle = new Bundle(resolve(directory!))
        try {
          return await action.run(context, bundle, options)
        } finally {
          bundle.close()
        }
      }),
    )
}
