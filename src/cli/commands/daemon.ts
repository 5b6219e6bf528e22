import type { Command } from 'commander'
import { define, handle } from '../define.ts'

export function register(program: Command): void {
  define(program, {
    name: 'daemon',
    group: 'serve',
    summary: 'serve a directory to programs, on a socket',
    description:
      'Answers programs that ask for operations (docs/api.md) about the current directory, on a unix socket that only you can ' +
      'reach, until it gets SIGTERM or Ctrl-C. It says where the socket is; `savepoint ctl` finds it by itself. ' +
      'Commands that it runs for a caller end with it; what it is changing is completed.',
    usage: '[--force]',
    examples: [
      ['daemon', 'serve this directory'],
      ['daemon -t ~/project &', 'serve another one, in the background'],
      ['ctl head', 'ask it'],
    ],
    cancellable: true,
  })
    .option('--force', 'also for $HOME, /, or a directory that was replaced')
    .action(
      handle<{ force?: boolean }>(async (context, { options }) => {
        const { startDaemon } = await import('../../api/daemon.ts')
        const { signal, ...engine } = context.engineOptions()
        const daemon = await startDaemon({ ...engine, force: options.force })
        const { target, socket } = daemon
        if (context.options.json) context.output.write(`${JSON.stringify({ target, socket, pid: process.pid })}\n`)
        else if (context.options.quiet) context.line(socket)
        else context.line(`Serving ${target} at ${socket} (process ${process.pid})`)
        await context.output.flushed()
        if (!signal!.aborted) await new Promise<void>(resolve => signal!.addEventListener('abort', () => resolve()))
        await daemon.close()
      }),
    )
}
