import type { Command } from 'commander'
import { doctorJson } from '../../api/json-maintain.ts'
import type { DoctorResult } from '../../index.ts'
import { define, handle } from '../define.ts'
import type { Style } from '../style.ts'
import { showText } from '../text.ts'

export function register(program: Command): void {
  define(program, {
    name: 'doctor',
    group: 'maintain',
    summary: 'check this machine and the configuration',
    description:
      'Checks what Savepoint needs on this machine, which drivers were chosen and why, which configuration files count, ' +
      'and which configured keys have no effect yet. Exit code 1 when something does not work.',
    examples: [['doctor', 'everything it can see from here']],
  }).action(
    handle(async context => {
      const result = await context.doctor()
      if (context.options.json) context.json(doctorJson(result))
      else context.output.write(doctorText(result, context.style))
      return result.checks.some(({ state }) => state === 'problem') ? 1 : 0
    }),
  )
}

function doctorText(result: DoctorResult, style: Style): string {
  const marks = { ok: style.green('ok     '), warning: style.yellow('warning'), problem: style.red('problem') }
  const width = Math.max(...result.checks.map(({ name }) => name.length), 0)
  const lines = result.checks.flatMap(({ name, state, detail, fix }) => [
    `${marks[state]}  ${name.padEnd(width)}  ${showText(detail)}`,
    ...(fix === undefined ? [] : [`${' '.repeat(width + 11)}fix: ${showText(fix)}`]),
  ])
  if (result.config.length > 0) lines.push('', 'Configuration, the later wins:')
  for (const { path, present } of result.config) lines.push(`  ${path}${present ? '' : style.dim(' (absent)')}`)
  return `${lines.join('\n')}\n`
}
