/**
 * The configuration that holds here: defaults, under `config.yaml` of the home, under `savepoint.yaml` of the target,
 * under the file that SAVEPOINT_CONFIG names, under SAVEPOINT_BACKEND and SAVEPOINT_TRACER; and SAVEPOINT_LOCK_WAIT_MS.
 */
import { join, resolve } from 'node:path'
import { backendNames } from '../model/backend-name.ts'
import { nearest } from '../model/suggest.ts'
import { withCommandPaths } from './command-paths.ts'
import { type Config, defaultConfig, mergeConfig, type PartialConfig, tracerNames } from './config.ts'
import { invalidVariable, quote } from './problem.ts'
import { readConfigFile } from './read-file.ts'
import { weakenings } from './weakenings.ts'

const defaultLockWaitMs = 10_000

export interface LoadOptions {
  /** Root of the protected directory; undefined when there is none (yet). */
  targetDir: string | Buffer | undefined
  /** $SAVEPOINT_HOME, resolved by the caller. */
  homeDir: string
  env: Record<string, string | undefined>
  /** What a relative SAVEPOINT_CONFIG is relative to. */
  cwd?: string
  /** Which text counts for the target's savepoint.yaml; default: what is there. */
  accept?: (read: () => string | undefined) => string | undefined
}

export interface LoadedConfig {
  config: Config
  /** The files that count, weakest first. */
  sources: { path: string; present: boolean }[]
  /** What the target's savepoint.yaml takes away from the protection, one phrase each. */
  weakens: string[]
  /** How long to wait for another command. */
  lockWaitMs: number
  /** Of the target's savepoint.yaml, as it counts. */
  targetText: string | undefined
}

interface Source {
  path: string
  isOfTarget: boolean
  part: PartialConfig | undefined
}

/** Throws config.invalid when a file or a variable is wrong; an absent file is fine unless SAVEPOINT_CONFIG names it. */
export async function loadConfig(options: LoadOptions): Promise<LoadedConfig> {
  const variables = readVariables(options.env)
  const sources: Source[] = []
  let targetText: string | undefined
  for (const { path, file, isOfTarget, variable } of listFiles(options)) {
    const read = () => readConfigFile(path, file, { beneath: isOfTarget })
    const text = isOfTarget && options.accept ? options.accept(read) : read()
    if (isOfTarget) targetText = text
    if (text === undefined && variable) {
      throw invalidVariable(variable, `${path} does not exist`, `Create the file, or unset ${variable}.`)
    }
    sources.push({ path, isOfTarget, part: text === undefined ? undefined : await parse(path, text) })
  }
  const merge = (parts: (PartialConfig | undefined)[]) =>
    [...parts, variables].reduce<Config>((base, part) => (part ? mergeConfig(base, part) : base), defaultConfig)
  const config = merge(sources.map(({ part }) => part))
  const withoutTarget = merge(sources.map(({ part, isOfTarget }) => (isOfTarget ? undefined : part)))
  return {
    config: options.targetDir === undefined ? config : withCommandPaths(config, options.targetDir),
    sources: sources.map(({ path, part }) => ({ path, present: part !== undefined })),
    weakens: weakenings(withoutTarget, config),
    lockWaitMs: readMs(options.env, 'SAVEPOINT_LOCK_WAIT_MS', defaultLockWaitMs),
    targetText,
  }
}

/** As it is in the directory now. Throws config.invalid when it cannot be read as text. */
export function readTargetConfig(targetDir: Buffer): string | undefined {
  const { path, file } = targetFile(targetDir)
  return readConfigFile(path, file, { beneath: true })
}

/** yaml and zod take some 100 ms to import: only where there is a file to read. */
async function parse(path: string, text: string): Promise<PartialConfig> {
  const { parseConfig } = await import('./parse-config.ts')
  return parseConfig(path, text)
}

function listFiles({ targetDir, homeDir, env, cwd }: LoadOptions) {
  const files: { path: string; file?: Buffer; isOfTarget: boolean; variable?: string }[] = [
    { path: join(homeDir, 'config.yaml'), isOfTarget: false },
  ]
  if (targetDir !== undefined) files.push({ ...targetFile(targetDir), isOfTarget: true })
  if (env.SAVEPOINT_CONFIG) {
    const path = resolve(cwd ?? process.cwd(), env.SAVEPOINT_CONFIG)
    files.push({ path, isOfTarget: false, variable: 'SAVEPOINT_CONFIG' })
  }
  return files
}

/** `path` is for people, where the real one is not UTF-8. */
const targetFile = (targetDir: string | Buffer): { path: string; file: Buffer } => ({
  path: join(targetDir.toString(), 'savepoint.yaml'),
  file: Buffer.concat([Buffer.from(targetDir), Buffer.from('/savepoint.yaml')]),
})

function readVariables(env: LoadOptions['env']): PartialConfig {
  const backend = readChoice(env, 'SAVEPOINT_BACKEND', backendNames)
  const tracer = readChoice(env, 'SAVEPOINT_TRACER', tracerNames)
  return { ...(backend && { snapshots: { backend } }), ...(tracer && { tracing: { tracer } }) }
}

function readMs(env: LoadOptions['env'], variable: string, otherwise: number): number {
  const value = env[variable]
  if (!value) return otherwise
  const ms = Number(value)
  if (/^\d+$/.test(value) && Number.isSafeInteger(ms)) return ms
  const what = `it must be a whole number of milliseconds, but is ${quote(value)}`
  throw invalidVariable(variable, what, `For example ${variable}=${otherwise}, or unset it.`)
}

/** An empty variable counts as unset, as shells have it. */
function readChoice<Name extends string>(env: LoadOptions['env'], variable: string, names: readonly Name[]) {
  const value = env[variable]
  if (!value) return undefined
  const known = names.find(name => name === value)
  if (known) return known
  const meant = nearest(value, names)
  const hint = meant ? `Did you mean ${variable}=${meant}?` : `Known: ${names.join(', ')}.`
  throw invalidVariable(variable, `it must be one of ${names.join(', ')}, but is ${JSON.stringify(value)}`, hint)
}
