import type { Command } from 'commander'
import { define, handle } from '../define.ts'

export function register(program: Command): void {
  define(program, {
    name: 'demo',
    group: 'more',
    summary: 'watch a project be destroyed and come back',
    description:
      'Plays a story of about a minute in a temporary directory with a store of its own: an “agent” deletes .git, half of ' +
      'the source and .env; one command brings everything back, byte for byte. Nothing of yours is touched.',
    examples: [
      ['demo', 'at reading speed'],
      ['demo --fast', 'without pauses'],
    ],
  })
    .option('--fast', 'without pauses')
    .action(
      handle<{ fast?: boolean }>(async (context, { options }) => {
        const { buildStage } = await import('../demo/stage.ts')
        const { play } = await import('../demo/story.ts')
        const stage = buildStage(context, options.fast === true)
        const leave = () => {
          stage.clear()
          process.exit(130)
        }
        process.once('SIGINT', leave).once('SIGTERM', leave).once('SIGHUP', leave)
        try {
          const result = await play(context, stage)
          if (context.options.json) context.json(result)
          return result.identical ? 0 : 1
        } finally {
          stage.clear()
        }
      }),
    )
}
