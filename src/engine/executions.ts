/**
 * Which execution an event of a file was of. The tracer that tells the event knows it; of what was watched, only the process
 * may be known, and then it is the one that ran in it at that time.
 */
import { hidePath } from '../model/hide-words.ts'
import { parentOf, type Raw, rawFromBytes } from '../model/raw-path.ts'
import type { Execution, FileEvent } from '../model/trace.ts'
import type { Context } from './context.ts'

/** Where it is only likely which one it was: first those whose words name the path, or a directory above it. */
export function namingFirst({ targetPath }: Pick<Context, 'targetPath'>, path: Raw): (a: Said, b: Said) => number {
  const target = rawFromBytes(targetPath)
  const naming = [...withAncestors(path)].map(each => hidePath(target, each))
  const isNamed = ({ argv, cwd }: Said) => Number(naming.some(hide => hide(argv, cwd) !== undefined))
  return (a, b) => isNamed(b) - isNamed(a)
}

type Said = Pick<Execution, 'argv' | 'cwd'>

function* withAncestors(path: Raw): Generator<Raw> {
  for (let at = path; at !== ''; at = parentOf(at)) yield at
}

/** What was only watched is told a little later than it happened. */
const WATCH_DELAY_MS = 200

/** For one answer: executions of a run are read once. */
export class Executions {
  private readonly ctx: Context
  private readonly single = new Map<string, Execution | undefined>()
  private readonly byRun = new Map<string, Map<number, Execution[]>>()

  constructor(ctx: Context) {
    this.ctx = ctx
  }

  /** Undefined when it cannot be told. */
  of(event: FileEvent): Execution | undefined {
    if (event.exec !== 0) return this.named(event)
    if (event.pid === 0 || event.run === '') return undefined
    return this.ofRun(event.run)
      .get(event.pid)
      ?.findLast(execution => isRunning(execution, event))
  }

  /** Those that ran when it happened. */
  around(event: FileEvent): Execution[] {
    return [...this.ofRun(event.run).values()].flat().filter(execution => isRunning(execution, event))
  }

  private named({ run, exec }: FileEvent): Execution | undefined {
    const key = `${run} ${exec}`
    if (!this.single.has(key)) this.single.set(key, this.ctx.db.trace.execution(run, exec))
    return this.single.get(key)
  }

  private ofRun(run: string): Map<number, Execution[]> {
    const known = this.byRun.get(run) ?? Map.groupBy(this.ctx.db.trace.executions(run), ({ pid }) => pid)
    this.byRun.set(run, known)
    return known
  }
}

const isRunning = ({ at, endedAt }: Execution, event: FileEvent): boolean =>
  at <= event.at && (endedAt === undefined || endedAt >= event.at - WATCH_DELAY_MS)
