import { resolve } from 'node:path'
import type { Command } from 'commander'
import type { Bundle } from '../../index.ts'
import type { DiffOptions } from '../bundle/diff.ts'
import type { ShowOptions } from '../bundle/show.ts'
import type { Context } from '../context.ts'
import { define, handle } from '../define.ts'
import { wrongUsage } from '../usage.ts'

type Options = ShowOptions & DiffOptions

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
}
const common = new Set(['target', 'adopt', 'home', 'json', 'quiet', 'color', 'pager'])

export function register(program: Command): void {
  define(program, {
    name: 'bundle',
    group: 'more',
    summary: 'look at, check and restore what `record` wrote',
    description:
      'Works with a bundle, the directory that `savepoint record` writes. `show` lists its paths, `diff` prints the changes as a patch, ' +
      '`verify` compares every content with its hash. A bundle is not trusted: what makes no sense in it is refused (exit code 14).',
    usage: 'show|diff|verify BUNDLE [options]',
    examples: [
      ['bundle show --changed build.bundle', 'what changed'],
      ['bundle show --tree build.bundle', 'everything, as a tree'],
      ['bundle diff build.bundle', 'as a patch'],
      ['bundle verify build.bundle', 'is everything there, and unharmed?'],
    ],
    cancellable: true,
  })
    .argument('<what>', Object.keys(actions).join(', '))
    .argument('<bundle>', 'the directory')
    .option('--tree', 'show: as a tree')
    .option('--changed', 'show: only what changed')
    .option('--stat', 'diff: count changed lines per file')
    .option('--name-only', 'diff: only the names of changed files')
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
        const { Bundle } = await import('../../index.ts')
        const bundle = new Bundle(resolve(directory!))
        try {
          return await action.run(context, bundle, options)
        } finally {
          bundle.close()
        }
      }),
    )
}
