/** Tools that answer from the trace of runs, and whether a path is protected. */
import { z } from 'zod'
import * as shapes from '../api/shapes.ts'
import type * as traced from '../api/shapes-trace.ts'
import { plural } from '../model/format.ts'
import { commandItem, path, runItem } from './items.ts'
import { listOf, tool } from './tool.ts'
import { ageOf, commandLine, type ExecutionJson, endOf, keptLines } from './words.ts'

type WhyJson = z.output<typeof traced.why>
type Cause = WhyJson['causes'][number]

const MAX_INDENT = 8
const ARGUMENTS = 50

const commandOf = (execution: ExecutionJson) => ({
  ...commandItem.parse({ ...execution, line: commandLine(execution) }),
})

const causeItem = z.object({
  kind: z.string(),
  name: z.string().describe('the name that it had then'),
  time: z.string().nullable(),
  outcome: z.string(),
  run: z.string().nullable(),
  command: commandItem.nullable(),
  before: z.string().nullable(),
  after: z.string().nullable(),
})

export const traceTools = [
  tool({
    name: 'commands_list',
    title: 'List the commands of a run',
    operation: 'trace',
    description:
      'Lists the commands that a run (`savepoint run`) executed, in their order, indented under the one that started them, with ' +
      'exit code and duration. Without run: the newest.',
    input: z.object({
      run: z.string().min(1).optional().describe('id of a run'),
      failed: z.boolean().optional().describe('only those that failed'),
    }),
    facts: z.object({ run: runItem }),
    lists: { commands: commandItem },
    async answer(call, { run, failed, start_index }) {
      const trace = await call<z.output<typeof traced.trace>>('trace', { run, failed })
      const { id, command, exit_code, signal, ended_at } = trace.run
      const end = ended_at === null ? 'going on' : signal ? `killed by ${signal}` : `exit ${exit_code}`
      return {
        head: [`${id} (${end}): ${plural(failed ? 'failed command' : 'command', trace.commands.length)}`],
        facts: { run: runItem.parse({ ...trace.run, command: command.slice(0, ARGUMENTS) }) },
        list: listOf('commands', trace.commands, start_index, each => ({
          text: `${' '.repeat(Math.min(each.depth, MAX_INDENT))}$ ${commandLine(each)}  (${endOf(each)})`,
          value: commandOf(each),
        })),
        foot: ['why_changed {path} says which of them changed a file'],
      }
    },
  }),
  tool({
    name: 'why_changed',
    title: 'Say which command changed a file',
    operation: 'why',
    description: 'Says which commands of runs changed a file, newest first, with the snapshots before and after.',
    input: z.object({ path }),
    facts: z.object({ path: z.string() }),
    lists: { causes: causeItem },
    async answer(call, input) {
      const why = await call<WhyJson>('why', { path: input.path })
      return {
        head: [
          why.causes.length === 0
            ? `No traced command changed ${why.path}: it was changed outside of a run, or not at all`
            : `${why.path}: ${plural('change', why.causes.length)} by traced commands, newest first`,
        ],
        facts: { path: why.path },
        list: listOf('causes', why.causes, input.start_index, cause => ({
          text: causeLine(cause),
          value: causeValue(cause),
        })),
        foot: ['snapshots_history {path} lists its versions'],
      }
    },
  }),
  tool({
    name: 'coverage',
    title: 'Say whether a file can be brought back',
    operation: 'coverage',
    description:
      'Says whether a file is protected, that is, can be brought back, and which ignore rule or limit decides that it cannot.',
    input: z.object({ path }),
    facts: shapes.coverage.omit({ latest: true }).extend({ latest: z.string().nullable() }),
    async answer(call, input) {
      const { latest, ...found } = await call<z.output<typeof shapes.coverage>>('coverage', { path: input.path })
      const { path, covered, reason, rule, left_out: left, up_to_date: isUpToDate, versions } = found
      const word = reason === 'disabled' ? 'snapshots are turned off by the configuration' : reason
      const why = [word, rule].filter(Boolean).join(': ')
      const content = left.count > 0 ? 'the rest of its present content' : 'its present content'
      const until = `${content} is in ${isUpToDate ? 'a snapshot' : 'no snapshot yet'}`
      const but = left.paths.map(skipped => `${skipped.path} (${skipped.reason})`).join(', ')
      return {
        head: [
          covered
            ? `${path} is protected${left.count > 0 ? ' but for what is left out' : ''}; ${until}`
            : `${path} is not protected${why === '' ? '' : ` (${why})`}`,
          latest === null
            ? `No snapshot${found.not_read > 0 ? ' that is read' : ''} has it`
            : `In ${plural('snapshot', versions)}, the newest ${isUpToDate ? 'with this content ' : ''}is ${latest.id} (${ageOf(latest.created_at)})`,
          found.not_read > 0 &&
            `Not counted: ${plural('snapshot', found.not_read)} that only a filesystem keeps until now, and nobody has read`,
          left.count > 0 &&
            `Snapshots do not capture ${plural('path', left.count)} below it: ${but}${left.count > left.paths.length ? ', …' : ''}`,
          ...keptLines(found.kept),
        ].filter(line => line !== false),
        facts: { ...found, latest: latest?.id ?? null },
        foot: covered && !isUpToDate ? ['snapshots_create captures it'] : [],
      }
    },
  }),
]

function causeLine({ event, name, outcome, command, likely, before, after }: Cause): string {
  const by = command ?? likely[0]
  const who = by ? `$ ${commandLine(by)}  (${event.run}, ${endOf(by)})` : 'an unknown command'
  const sure = outcome === 'changed' ? '' : outcome === 'unchanged' ? ', without effect' : ', perhaps'
  const states = [before && `before: ${before}`, after && `after: ${after}`].filter(Boolean).join(', ')
  return `${event.kind}${sure} ${ageOf(event.time)}, ${name}, by ${command ? '' : 'probably '}${who}${states && `; ${states}`}`
}

function causeValue({ event, name, outcome, command, likely, before, after }: Cause) {
  const by = command ?? likely[0]
  return {
    kind: event.kind,
    name,
    time: event.time,
    outcome,
    run: event.run,
    command: by ? commandOf(by) : null,
    before,
    after,
  }
}
