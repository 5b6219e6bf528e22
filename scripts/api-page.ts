/** Writes docs/api.md from the table of operations, for scripts/make-docs.ts. */
import { z } from 'zod'
import type { Operation } from '../src/api/operation.ts'
import { inputSchema, operations, outputSchema } from '../src/api/table.ts'

/** As much of JSON Schema as our shapes use. */
interface Schema {
  $ref?: string
  $defs?: Record<string, Schema>
  type?: string | string[]
  const?: unknown
  enum?: unknown[]
  anyOf?: Schema[]
  allOf?: Schema[]
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
  default?: unknown
  description?: string
}

type Table = (head: string[], rows: string[][]) => string[]

const effects: Record<Operation['effect'], string> = {
  read: 'only looks',
  write: 'adds something, loses nothing',
  destructive: 'changes files, history or processes',
}

export function apiPage(table: Table): string[] {
  const shapes = new Map<string, Schema>()
  const sections = operations.flatMap(operation => ['', ...section(operation, table, shapes)])
  return [
    ...introduction,
    '',
    ...http,
    '',
    '## Operations',
    '',
    ...table(
      ['Operation', 'Effect', 'What it does'],
      operations.map(({ name, effect, summary }) => [`[\`${name}\`](#${name})`, effects[effect], summary]),
    ),
    ...sections,
    '',
    '## Shapes',
    ...[...shapes]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .flatMap(([name, schema]) => ['', `### Shape ${name}`, '', ...shape(schema, table)]),
  ]
}

const http = [
  '## HTTP',
  '',
  '`savepoint daemon --http [HOST:]PORT` serves the same operations at `/v1/NAME`: `POST` with the parameters as a JSON object, and for what only looks also `GET`',
  'with the parameters in the query (a list is a parameter repeated). The answer is the result alone. `/openapi.json` describes all of it (OpenAPI 3.1), `/docs` is a page to read.',
  'Clients can be generated from it: every shape has a name, `test/openapi-client.test.ts` makes one and drives a daemon with it. `ExecEvents`, `TraceEvents` and `SubscribeEvents` are what server-sent events carry.',
  'With `Accept: text/event-stream` the answer is server-sent events: each frame of the socket is one, named by its first key (`stdout`, `stderr`,',
  '`event`, `notice`, `progress`, …), the last one is `end` or `error`. `subscribe`, and `trace` that follows, are answered only so,',
  'nor does another answer carry notices or the output of `exec`.',
  '',
  'Requests below `/v1` need `Authorization: Bearer TOKEN`. The token is `SAVEPOINT_HTTP_TOKEN` (16 characters or more), else one that is made at the first start,',
  'printed once (with `--json` as `http_token`) and kept in `http-token` of the home (0600). Beyond this machine it listens only with a token of yours. A request that names another host or origin is refused, so that',
  'no web page gets anywhere (where it listens on all addresses, every host name is taken, as its names cannot be known; the origin still has to be the same). Commands of `exec` and `spawn` do not get `SAVEPOINT_HTTP_TOKEN`. A body may have 1 MiB, and there are at most 256 connections. A process of a run has the rights of a process of a run, by HTTP as by the socket, when it is on the same machine.',
  '',
  'Errors are `application/problem+json` (RFC 9457) with the `code` of [errors.md](errors.md), `hint` and `data`: 400 for what is wrong in the request, 401 without the token,',
  '403 from elsewhere, for what a run may not do and for what may be secret, 404 for what is not there, operations and processes included, 405 with `Allow`, 406 where only server-sent events can be the answer, 409 where the state does not allow it, 413 for a body beyond the limit, 423 while another process is at work, 507 when the disk is full.',
  '',
  '```text',
  '$ curl -H "Authorization: Bearer $TOKEN" \'http://127.0.0.1:7070/v1/diff?from=good&paths=src\'',
  '$ curl -N -H "Authorization: Bearer $TOKEN" -H \'Accept: text/event-stream\' -d \'{"cmd":"make test"}\' http://127.0.0.1:7070/v1/exec',
  '```',
]

const introduction = [
  'What the command line does to one target can be asked for by programs. `savepoint daemon` serves a directory on a unix',
  'socket, and so does a `savepoint run` that goes on ([where that is](control.md)); `savepoint ctl OP key=value…` asks whichever is',
  'there, or does it itself. All of it is made from one table (`src/api/table.ts`), and so is this page. Left to the command line are `purge` and',
  '`trust`, which somebody should decide, and what makes or takes files elsewhere: `export`, `import`, `record` and `bundle`.',
  '',
  '## The socket',
  '',
  '`timelines/<id>/daemon.json` names it. It lies in `$XDG_RUNTIME_DIR/savepoint` if that directory is yours alone, else in `sockets/` of the',
  'home: 0600 in a directory that is 0700. Whoever connects must be the same user, or root. One JSON object per line, in both directions:',
  '',
  '```text',
  '> {"op":"exec","cmd":"make test"}',
  '< {"stdout":"ok 1\\n"}',
  '< {"ok":true,"exit":0,"signal":null,"run":"run_k3m9x2ab","snapshot":"snap_k3m9x2ab","head":"snap_k3m9x2ab",…}',
  '> {"op":"head","id":7}',
  '< {"id":7,"ok":true,"result":{"id":"snap_k3m9x2ab","type":"final",…}}',
  '> {"op":"rolback","id":8}',
  '< {"id":8,"error":{"code":"usage","message":"There is no operation \\"rolback\\"","hint":"Did you mean \\"rollback\\"?"}}',
  '```',
  '',
  '- A connection takes any number of requests. Those with an `id` (any JSON value) are carried out side by side, and all their frames carry it;',
  '  those without one after the other.',
  '- The last frame of an answer has `ok` and `result`, or `error` with a code of [errors.md](errors.md). The answer of `exec` stands beside `ok`.',
  '- Before it may come `{"notice":…}` (one line for people), `{"progress":…}`, `{"unstoppable":…}` (whether a cancellation has an effect),',
  '  and what the operation itself says. Output is text, or base64 with `"encoding":"base64"` where it is no UTF-8.',
  '- `{"cancel":true}`, or `{"cancel":id}`, stops at a safe point; so does closing the connection, or only its writing side (`nc -N`): keep it open until the last frame is there. The command of `exec` is then stopped with',
  '  all its processes, and its run recorded; that of `spawn` goes on.',
  '- Paths are relative to the target. A parameter that an operation does not have is refused.',
  '- A request that comes from a process of a run follows the rules of [control.md](control.md): nothing is stopped for it, it may delete only',
  '  snapshots that it made, and `prune` and `gc` are refused.',
  '- What takes longer is done by processes of its own, at most 6 at a time, and 64 commands: whoever looks does not wait for it.',
  '- Limits: a request has at most 1 MiB and 64 levels, an answer 64 MiB, and there are at most 256 clients. A client that does not read is not read either, and',
  '  the command whose output it does not take waits; of what it follows, `{"left_out":n}` says how much it missed.',
  '- SIGTERM ends the daemon: what it is changing is completed and answered, the rest is cancelled. One daemon serves a target.',
]

function section(operation: Operation, table: Table, shapes: Map<string, Schema>): string[] {
  const { name, aliases, summary, effect, isIdempotent, follows, frames } = operation
  const input = inputSchema(operation) as Schema
  const output = outputSchema(operation) as Schema
  const spoken = frames && (z.toJSONSchema(frames, { io: 'output', reused: 'inline' }) as Schema)
  for (const schema of [output, spoken]) collect(schema, shapes)
  const traits = [
    effects[effect],
    ...(isIdempotent && effect !== 'read' ? ['twice is the same as once'] : []),
    ...(follows ? ['may go on until it is cancelled'] : []),
    ...(aliases ? [`also called ${aliases.map(alias => `\`${alias}\``).join(', ')}`] : []),
  ]
  const parameters = Object.entries(input.properties ?? {})
  return [
    `### ${name}`,
    '',
    `${summary[0]!.toUpperCase()}${summary.slice(1)}. (${traits.join('; ')})`,
    ...(parameters.length === 0 ? [] : ['', ...parameterTable(parameters, input.required ?? [], table)]),
    ...(spoken ? ['', `Before its answer: ${objectText(spoken)}`] : []),
    '',
    `Answers: ${typeText(output)}${output.description ? ` (${output.description})` : ''}`,
  ]
}

const parameterTable = (parameters: [string, Schema][], required: string[], table: Table): string[] =>
  table(
    ['Parameter', 'Type', 'Meaning'],
    parameters.map(([name, schema]) => [
      `\`${name}\`${required.includes(name) ? ' (needed)' : ''}`,
      typeText(schema),
      [schema.description ?? '', ...('default' in schema ? [`default \`${JSON.stringify(schema.default)}\``] : [])]
        .filter(Boolean)
        .join('; '),
    ]),
  )

function collect(schema: Schema | undefined, shapes: Map<string, Schema>): void {
  for (const [name, shape] of Object.entries(schema?.$defs ?? {})) shapes.set(name, shape)
}

const nameOf = (ref: string): string => ref.replace(/^#\/\$defs\//, '')
const linked = (name: string): string => `[${name}](#shape-${name.toLowerCase()})`

function typeText(schema: Schema): string {
  if (schema.$ref) return linked(nameOf(schema.$ref))
  if (schema.allOf?.length === 1) return typeText(schema.allOf[0]!)
  if (schema.anyOf) return schema.anyOf.map(typeText).join(' or ')
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``
  if (schema.enum) return schema.enum.map(value => `\`${value}\``).join(', ')
  if (schema.type === 'array') return `list of ${schema.items ? typeText(schema.items) : 'anything'}`
  if (schema.type === 'object') return objectText(schema)
  return schema.type === undefined ? 'anything' : [schema.type].flat().join(' or ')
}

const objectText = ({ properties = {}, required = [] }: Schema): string =>
  `{ ${Object.entries(properties)
    .map(([name, value]) => `${name}${required.includes(name) ? '' : '?'}: ${typeText(value)}`)
    .join('; ')} }`

function shape(schema: Schema, table: Table): string[] {
  if (schema.anyOf)
    return schema.anyOf.map(each => `- ${typeText(each)}${each.description ? `: ${each.description}` : ''}`)
  const rows = Object.entries(schema.properties ?? {})
  return table(
    ['Field', 'Type', 'Meaning'],
    rows.map(([name, field]) => [`\`${name}\``, typeText(field), field.description ?? '']),
  )
}
