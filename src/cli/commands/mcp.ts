import type { Command } from 'commander'
import { createCancellation } from '../cancellation.ts'
import { define, handle } from '../define.ts'
import { version } from '../version.ts'

export function register(program: Command): void {
  define(program, {
    name: 'mcp',
    group: 'more',
    summary: 'serve an agent over MCP (stdio)',
    description:
      'Serves the Model Context Protocol on standard input and output, for an agent that starts it: tools to take, list, compare ' +
      'and bring back snapshots, to see which command changed a file, and whether a file is protected. Works on the timeline of ' +
      'the directory it is started in, or of --target, with or without a live run; inside of a run, the run goes on. Ends when the ' +
      'client closes its side, after everything is answered.',
    examples: [
      ['mcp', 'for the directory it is started in'],
      ['mcp -t ~/shop', 'for this one'],
    ],
  }).action(
    handle(async context => {
      const { target, adopt, home } = context.options
      const { serveMcp } = await import('../../mcp/serve.ts')
      const cancellation = createCancellation(() => {})
      if (process.stdin.isTTY)
        context.notice(
          'waiting for messages of the protocol: agents start this, see `savepoint connect`; Ctrl-D ends it',
        )
      try {
        await serveMcp({
          version,
          input: process.stdin,
          output: process.stdout,
          open: { target, adopt, home, env: process.env },
          signal: cancellation.signal,
          onError: error => context.notice(`MCP: ${inOneLine(error)}`),
        })
      } finally {
        cancellation.dispose()
      }
    }),
  )
}

/** Of a line that fits none of the shapes of a message, all that did not fit would be told. */
const inOneLine = (error: Error): string =>
  'issues' in error ? 'a line on standard input is no message of the protocol' : error.message.split('\n', 1)[0]!
