import type { Command } from 'commander'
import { define, handle } from '../define.ts'
import { version } from '../version.ts'

export function register(program: Command): void {
  define(program, {
    name: 'daemon',
    group: 'serve',
    summary: 'serve a directory to programs, on a socket',
    description:
      'Answers programs that ask for operations (docs/api.md) about the current directory, on a unix socket that only you can ' +
      'reach, until it gets SIGTERM or Ctrl-C. It says where the socket is; `savepoint ctl` finds it by itself. ' +
      'Commands that it runs for a caller end with it; what it is changing is completed.',
    usage: '[--http [HOST:]PORT] [--force]',
    examples: [
      ['daemon', 'serve this directory'],
      ['daemon -t ~/project &', 'serve another one, in the background'],
      ['ctl head', 'ask it'],
      ['daemon --http 7070', 'for programs that speak HTTP, too: docs/api.md'],
    ],
    cancellable: true,
  })
    .option('--http <address>', 'serve HTTP, too: [HOST:]PORT; port 0 is any free one')
    .option('--force', 'also for $HOME, /, or a directory that was replaced')
    .action(
      handle<{ force?: boolean; http?: string }>(async (context, { options }) => {
        const { startDaemon } = await import('../../api/daemon.ts')
        const { signal, ...engine } = context.engineOptions()
        const http = options.http === undefined ? undefined : await import('../../api/http-server.ts')
        const address = http?.parseAddress(options.http!)
        const daemon = await startDaemon({ ...engine, force: options.force })
        const served = http && (await http.serveDaemon(address!, daemon, version))
        const { target, socket } = daemon
        const { value, isNew, file } = served?.token ?? {}
        if (context.options.json) {
          const token = { http_token: isNew ? value : null, http_token_file: file ?? null }
          const said = { target, socket, pid: process.pid, http: served?.url ?? null, ...token }
          context.output.write(`${JSON.stringify(said)}\n`)
        } else if (context.options.quiet) context.line(socket)
        else context.line(`Serving ${target} at ${socket} (process ${process.pid})`)
        if (served && !context.options.json) {
          context.line(`HTTP at ${served.url}, described at ${served.url}/docs`)
          if (isNew) context.line(`The token, which is not shown again: ${value} (kept in ${file})`)
          else if (file !== undefined) context.line(`The token is the one in ${file}`)
        }
        await context.output.flushed()
        if (!signal!.aborted) await new Promise<void>(resolve => signal!.addEventListener('abort', () => resolve()))
        await daemon.close()
        await served?.close()
      }),
    )
}
