/** `doctor`: what works here, what does not, and what to do about it. Works without a timeline. */
import { accessSync, constants, existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, defaultConfig, type TracerName } from '../config/config.ts'
import { loadConfig } from '../config/load.ts'
import type { SavepointError } from '../errors/errors.ts'
import { GIT_TIMEOUT_MS } from '../files/git-facts.ts'
import { runGit } from '../files/run-git.ts'
import { formatBytes, formatLimit, plural } from '../model/format.ts'
import { freeBytes } from '../store/reserve.ts'
import { canClone } from '../targets/dir/clone-source.ts'
import { probeTracers } from '../tracers/select.ts'
import { backendCheck } from './backend-check.ts'
import { chooseTarget, currentDirectory, meantDirectory } from './choose-target.ts'
import { homeOf } from './home.ts'
import { describeLeft, hintOfLeft, leftEverywhere } from './left-spools.ts'
import { roomOfTraces } from './old-traces.ts'
import type { DoctorResult } from './results.ts'
import type { OpenOptions } from './savepoint.ts'

type Check = DoctorResult['checks'][number]

export async function doctor(options: OpenOptions = {}): Promise<DoctorResult> {
  const env = options.env ?? process.env
  const home = homeOf(options, env)
  const cwd = options.cwd ?? process.cwd()
  const target = targetOf(home, options, env)
  const config = await configCheck(home, cwd, env, target)
  const checks: Check[] = [
    { name: 'node', state: 'ok', detail: `${process.version} at ${process.execPath}` },
    { name: 'native addon', state: 'ok', detail: 'loaded' },
    homeCheck(home),
    spaceCheck(home, (config.loaded?.config ?? defaultConfig).snapshots),
    backendCheck(home, target, config.loaded?.config.snapshots.backend ?? defaultConfig.snapshots.backend),
    ...(config.loaded?.config.snapshots.disabled ? [turnedOff] : []),
    cloneCheck(home),
    await gitCheck(cwd, env),
    tracerCheck(config.loaded?.config.tracing.tracer ?? 'auto'),
    traceCheck(home),
    ...leftChecks(home),
    config.check,
  ]
  return { checks, config: config.loaded?.sources ?? [] }
}

/** With all that were looked at, so that one sees why it is not another. */
function tracerCheck(wanted: TracerName): Check {
  const probes = probeTracers()
  const chosen = probes.find(({ name, works }) => (wanted === 'auto' ? works : name === wanted))!
  const others = probes.filter(({ name }) => name !== chosen.name && name !== 'none')
  const rest = others.map(({ name, detail }) => `${name}: ${detail}`).join('; ')
  const detail = `${chosen.name}: ${chosen.detail}${rest ? ` (${rest})` : ''}`
  if (!chosen.works) return { name: 'tracer', state: 'problem', detail, fix: 'Set tracing.tracer to auto' }
  if (chosen.name !== 'none' || wanted === 'none') return { name: 'tracer', state: 'ok', detail }
  return { name: 'tracer', state: 'warning', detail, fix: 'Runs are protected and watched, but not traced' }
}

/** How much room traces take, of which nobody else speaks. */
function traceCheck(home: string): Check {
  const { runs, fileBytes, databaseBytes } = roomOfTraces(home)
  const detail =
    runs === 0
      ? 'none yet'
      : `${formatBytes(fileBytes)} of ${plural('run', runs)}; the databases of all timelines, which have them too, take ${formatBytes(databaseBytes)}`
  return { name: 'traces', state: 'ok', detail }
}

/** What takes the room of the store and is not in it. */
const leftChecks = (home: string): Check[] =>
  leftEverywhere(home).map(({ target, left }) => ({
    name: 'destroyed files',
    state: 'warning',
    detail: describeLeft(left),
    fix: hintOfLeft(target),
  }))

/** The directory whose configuration counts: that of the timeline which a command given here would use, or would make. */
function targetOf(home: string, options: OpenOptions, env: NodeJS.ProcessEnv): Buffer {
  const cwd = currentDirectory(home, options.cwd)
  try {
    return chooseTarget(home, cwd, { target: options.target }, env, () => {})!.path
  } catch {
    return meantDirectory(home, cwd, options.target)
  }
}

async function configCheck(home: string, cwd: string, env: NodeJS.ProcessEnv, targetDir: Buffer) {
  try {
    const loaded = await loadConfig({ targetDir, homeDir: home, env, cwd })
    const present = loaded.sources.filter(source => source.present).map(source => source.path)
    return {
      loaded,
      check: { name: 'config', state: 'ok' as const, detail: present.length > 0 ? present.join(', ') : 'defaults' },
    }
  } catch (error) {
    const { message, hint } = error as SavepointError
    return { loaded: undefined, check: { name: 'config', state: 'problem' as const, detail: message, fix: hint } }
  }
}

const turnedOff: Check = {
  name: 'snapshots',
  state: 'warning',
  detail: 'turned off by snapshots.disabled: nothing is captured, and runs cannot be undone',
  fix: 'Set snapshots.disabled to false',
}

function homeCheck(home: string): Check {
  if (!existsSync(home)) return { name: 'home', state: 'ok', detail: `${home} (made at first use)` }
  try {
    accessSync(home, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch {
    return {
      name: 'home',
      state: 'problem',
      detail: `${home} is not writable`,
      fix: 'Set SAVEPOINT_HOME, or mend its permissions',
    }
  }
  const { mode } = statSync(home)
  if (mode & 0o077)
    return { name: 'home', state: 'warning', detail: `${home} can be read by others`, fix: `chmod 700 ${home}` }
  return { name: 'home', state: 'ok', detail: home }
}

function spaceCheck(home: string, { min_free_bytes: floor, max_store_bytes: limit }: Config['snapshots']): Check {
  const free = freeBytes(nearestExisting(home))
  const stored = storeBytes(home)
  const store = Number.isFinite(limit) ? `; the store has ${formatBytes(stored)} of ${formatLimit(limit)}` : ''
  const detail = `${formatBytes(free)} free, ${formatLimit(floor)} are kept free${store}`
  if (free < floor)
    return {
      name: 'disk',
      state: 'problem',
      detail,
      fix: 'Free some space: captures into the store stop below the floor',
    }
  if (stored < limit) return { name: 'disk', state: 'ok', detail }
  const fix = 'Captures stop there: `savepoint prune` and `savepoint gc`, or raise snapshots.max_store_bytes'
  return { name: 'disk', state: 'problem', detail, fix }
}

/** What counts for `max_store_bytes`; the index is not opened for that. */
function storeBytes(home: string): number {
  const files = ['packs', 'clones'].flatMap(name => filesIn(join(home, 'store', name)))
  return files.reduce((sum, file) => sum + (statSync(file, { throwIfNoEntry: false })?.size ?? 0), 0)
}

function filesIn(directory: string): string[] {
  try {
    return readdirSync(directory).map(name => join(directory, name))
  } catch {
    return []
  }
}

function cloneCheck(home: string): Check {
  const clones = join(home, 'store', 'clones')
  if (!existsSync(clones)) return { name: 'reflink', state: 'ok', detail: 'found out at first use' }
  return {
    name: 'reflink',
    state: 'ok',
    detail: canClone(clones)
      ? 'large files share their blocks with the store'
      : 'the filesystem of the store has none, or it is another one than that of the target; large files are stored in chunks',
  }
}

async function gitCheck(cwd: string, env: NodeJS.ProcessEnv): Promise<Check> {
  const result = await runGit('version', [], {
    cwd: Buffer.from(cwd),
    env,
    repository: undefined,
    timeoutMs: GIT_TIMEOUT_MS,
  })
  if (result.code === 0) return { name: 'git', state: 'ok', detail: result.stdout.toString().trim() }
  return {
    name: 'git',
    state: 'warning',
    detail: 'not found, or it does not work: tracked files that are ignored cannot be told',
    fix: 'apt-get install git',
  }
}

function nearestExisting(path: string): string {
  return existsSync(path) ? path : nearestExisting(join(path, '..'))
}
