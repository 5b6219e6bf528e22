/**
 * `trust`: a savepoint.yaml that a process of a run wrote does not weaken the protection of the next one by itself. The
 * version that was in effect when the run began stays so, until a person says otherwise. While a run goes on, its version
 * holds for all commands.
 */
import { loadConfig, readTargetConfig } from '../config/load.ts'
import { weakenings } from '../config/weakenings.ts'
import { errnoOf, isDamage, isUnwritable } from '../errors/errors.ts'
import type { Run } from '../model/snapshot.ts'
import { addon } from '../native/addon.ts'
import type { TimelineDb } from '../timeline/timeline-db.ts'
import { type Context, refuseInsideRun, requireWritable } from './context.ts'
import { newOperation } from './new-operation.ts'
import type { TrustResult } from './results.ts'
import { isGoingOn } from './run-state.ts'
import { hasSurvivors, touchedBy } from './touched-paths.ts'

const NAME = 'savepoint.yaml'
const KEY = 'config.trust'
/** So many versions that runs wrote are remembered. */
const MAX_UNTRUSTED = 100

interface Trust {
  /** Versions, the newest last. */
  untrusted: string[]
  /** What counts instead; null: no file. */
  text: string | null
}

const pinKey = (run: string): string => `config.run:${run}`

/** What a version is known by. Undefined text: there is no such file. */
const versionOf = (text: string | undefined): string =>
  text === undefined ? 'absent' : Buffer.from(addon.hash(Buffer.from(text)), 'latin1').toString('hex')

/** A file that cannot even be read is a version, too. */
function readVersion(read: () => string | undefined): string {
  try {
    return versionOf(read())
  } catch {
    return 'unreadable'
  }
}

function trustOf(db: TimelineDb): Trust | undefined {
  return JSON.parse(db.meta(KEY) ?? 'null') as Trust | undefined
}

/** Which text counts for the target's savepoint.yaml, given what can be read there. */
export function acceptedConfig(history: Pick<Context, 'db' | 'timelineDir'>, notice: (text: string) => void) {
  const { db } = history
  return (read: () => string | undefined): string | undefined => {
    const version = readVersion(read)
    const pinned = db.unendedRuns().find(run => db.meta(pinKey(run.id)) !== undefined)
    if (pinned) {
      const text = JSON.parse(db.meta(pinKey(pinned.id))!) as string | null
      if (versionOf(text ?? undefined) === version) return text ?? undefined
      if (!isGoingOn(history, pinned)) sayUntrusted(notice)
      return text ?? undefined
    }
    const trust = trustOf(db)
    if (!trust?.untrusted.includes(version)) return read()
    sayUntrusted(notice)
    return trust.text ?? undefined
  }
}

const sayUntrusted = (notice: (text: string) => void): void =>
  notice(`a run changed ${NAME}: it takes effect only after \`savepoint trust\`, which shows what it weakens`)

/** From here to its end, this version holds. */
export function pinConfig(ctx: Context, run: Run): void {
  attempt(() => ctx.db.setMeta(pinKey(run.id), JSON.stringify(ctx.configText ?? null)))
}

/** Of a run that has no end yet: whether its command was about to start, or did. */
export const hasBegun = (ctx: Context, run: Run): boolean => ctx.db.meta(pinKey(run.id)) !== undefined

/** A run has ended: remembers the version that it left, if it changed the file. May be called twice. */
export function judgeConfig(ctx: Context, run: Run): void {
  attempt(() => {
    const pin = ctx.db.meta(pinKey(run.id))
    if (pin === undefined) return
    const text = JSON.parse(pin) as string | null
    const version = readVersion(() => readTargetConfig(ctx.targetPath))
    const isOthers = !hasSurvivors(ctx, run.id) && touchedBy(ctx, run.id)?.(NAME) === false
    ctx.db.transaction(() => {
      if (version !== versionOf(text ?? undefined) && !isOthers) {
        const untrusted = trustOf(ctx.db)?.untrusted.filter(each => each !== version) ?? []
        const trust: Trust = { untrusted: [...untrusted, version].slice(-MAX_UNTRUSTED), text }
        ctx.db.setMeta(KEY, JSON.stringify(trust))
        sayUntrusted(ctx.notice)
      }
      ctx.db.deleteMeta(pinKey(run.id))
    })
  }, isUnwritableNow)
}

/** After an error of the disk, or where the home is gone, too: the exit code of the command is the answer, and the pin stays to be judged later. */
const isUnwritableNow = (error: unknown): boolean => isUnwritable(error) || isDamage(error) || errnoOf(error) === 'EIO'

/** Without room for it, nothing is lost but the memory of who wrote the file. */
function attempt(work: () => void, isForgiven: (error: unknown) => boolean = isUnwritable): void {
  try {
    work()
  } catch (error) {
    if (!isForgiven(error)) throw error
  }
}

export async function trust(ctx: Context, options: { dryRun?: boolean }): Promise<TrustResult> {
  refuseInsideRun(ctx, 'trust a configuration')
  requireWritable(ctx)
  const dryRun = options.dryRun === true
  const known = trustOf(ctx.db)
  const version = readVersion(() => readTargetConfig(ctx.targetPath))
  if (!known?.untrusted.includes(version)) return { untrusted: false, dryRun, weakens: [] }
  const { env, home: homeDir, targetPath: targetDir } = ctx
  const { config } = await loadConfig({ env, homeDir, targetDir, cwd: ctx.cwd.toString() })
  const weakens = weakenings(ctx.config, config)
  if (!dryRun) {
    const untrusted = known.untrusted.filter(each => each !== version)
    ctx.db.transaction(() => {
      ctx.db.setMeta(KEY, JSON.stringify({ ...known, untrusted }))
      ctx.db.addOperation({ ...newOperation(ctx, 'trust', `trust ${NAME}`, { weakens }), state: 'fixed' })
    })
  }
  return { untrusted: true, dryRun, weakens }
}
