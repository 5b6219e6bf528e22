/**
 * What our caller gave us for the command of a run and Node does not pass on: open descriptors from 3 on, signals that are
 * ignored (nohup), and how many files may be open. The launcher names them (native/helper/inherit.h); a plain `node dist/cli.cjs` knows of none.
 */
import { constants } from 'node:os'
import type { Inherited } from '../index.ts'

const VARIABLE = 'SAVEPOINT_INHERITED'
const PROBED = 'SAVEPOINT_PROBED'
const numbers = (text = ''): number[] => text.split(',').filter(Boolean).map(Number)

function take(): Inherited {
  const [descriptors, ignoredSignals, fileLimit] = (process.env[VARIABLE] ?? '').split(' ')
  const probed = process.env[PROBED]
  // They are about this process alone.
  delete process.env[VARIABLE]
  delete process.env[PROBED]
  return {
    descriptors: numbers(descriptors),
    ignoredSignals: numbers(ignoredSignals),
    fileLimit: numbers(fileLimit)[0],
    probed,
  }
}

export const inherited: Inherited = take()

export const isIgnored = (name: NodeJS.Signals): boolean => inherited.ignoredSignals.includes(constants.signals[name])

// Node has set them back, and would die of them.
for (const name of ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM'] as const) if (isIgnored(name)) process.on(name, () => {})
