/** `open`: finds the target's timeline and gives the object whose methods are the verbs. */
import { existsSync, mkdirSync, readlinkSync, realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { type LoadedConfig, loadConfig } from '../config/load.ts'
import { errnoOf, isDamage, SavepointError } from '../errors/errors.ts'
import { rawFromBytes, showPath } from '../model/raw-path.ts'
import { setIndexAside } from '../store/damaged-index.ts'
import { readContent } from '../store/read-content.ts'
import { Store } from '../store/store.ts'
import { identityOf, sameIdentity, statDir } from '../targets/dir/dir-target.ts'
import { requireHead, resolveSnapshot } from '../timeline/resolve-ref.ts'
import { TimelineDb } from '../timeline/timeline-db.ts'
import { type Context, releaseObjects, withTimelineLock } from './context.ts'
import { coverage } from './coverage.ts'
import { compact, deleteSnapshots, prune } from './delete.ts'
import { changes, diff, snapshotChanges, status } from './diff.ts'
import { gc } from './gc.ts'
import { history } from './history.ts'
import { branches, listSnapshots, log } from './log.ts'
import { completePurge, isPurgePending, purge } from './purge.ts'
import { readFile } from './read-content.ts'
import { hasPending, recoverPending } from './recover.ts'
import { requireRun, revert, rollback } from './rollback.ts'
import { runCommand } from './run.ts'
import type { OpenOptions, Savepoint } from './savepoint.ts'
import { takeSnapshot } from './snapshot.ts'
import { deleteTag, setTag } from './tags.ts'
import {
  adoptTarget,
  createTarget,
  findTarget,
  type RegisteredTarget,
  relativeTo,
  targetAt,
  writeTarget,
} from './target-registry.ts'
import { redo, undo } from './undo.ts'
import { verify } from './verify.ts'

export const homeOf = (options: OpenOptions, env: NodeJS.ProcessEnv): string =>
  resolve(options.home ?? env.SAVEPOINT_HOME ?? join(env.HOME ?? homedir(), '.savepoint'))

export async function open(options: OpenOptions = {}): Promise<Savepoint> {
  const ctx = await openContext(options)
  try {
    await recoverAtOpen(ctx)
  } catch (error) {
    closeContext(ctx)
    throw error
  }
  return toSavepoint(ctx)
}

export async function openContext(options: OpenOptions): Promise<Context> {
  const env = options.env ?? process.env
  const home = homeOf(options, env)
  const notice = options.onNotice ?? (() => {})
  const cwd = currentDirectory(options.cwd)
  makeHome(home)
  const target = chooseTarget(home, cwd, options, env, notice)
  const { config, weakens, lockWaitMs } = await configFor(
    target.path,
    home,
    cwd,
    env,
    options.withoutBrokenConfig ? notice : undefined,
  )
  if (weakens.length > 0) notice(`savepoint.yaml of this directory weakens protection: ${weakens.join(', ')}`)
  refuseBackend(config.snapshots.backend)
  const store = openStore(join(home, 'store'), options.repair === true, notice)
  return {
    home: realpathSync(home),
    timelineId: target.id,
    timelineDir: target.directory,
    store,
    db: new TimelineDb(join(target.directory, 'timeline.sqlite')),
    targetPath: target.path,
    identity: target.identity,
    cwd,
    subdirectory: relativeTo(target.path, cwd) ?? '',
    config,
    env,
    force: options.force ?? false,
    now: options.now ?? Date.now,
    notice,
    warn: once(notice),
    progress: options.onProgress,
    signal: options.signal,
    lockWaitMs,
    held: undefined,
  }
}

/** With `notice`, a savepoint.yaml of the target that is wrong is said and does not count. */
async function configFor(
  targetDir: Buffer,
  homeDir: string,
  cwd: Buffer,
  env: NodeJS.ProcessEnv,
  notice: ((text: string) => void) | undefined,
): Promise<LoadedConfig> {
  const options = { homeDir, env, cwd: cwd.toString() }
  try {
    return await loadConfig({ ...options, targetDir })
  } catch (error) {
    if (!notice || !(error instanceof SavepointError) || error.code !== 'config.invalid') throw error
    const loaded = await loadConfig({ ...options, targetDir: undefined })
    notice(`going back without it: ${error.message}`)
    return loaded
  }
}

function once(say: (text: string) => void): (text: string) => void {
  const said = new Set<string>()
  return text => {
    if (said.has(text)) return
    said.add(text)
    say(text)
  }
}

export function closeContext(ctx: Context): void {
  releaseObjects(ctx)
  ctx.db.close()
  ctx.store.close()
}

function currentDirectory(cwd: string | undefined): Buffer {
  if (cwd !== undefined) return realPath(resolve(cwd))
  try {
    return readlinkSync('/proc/self/cwd', 'buffer') as unknown as Buffer
  } catch {
    return Buffer.from(process.cwd())
  }
}

/** A directory that is gone (the run removed it) keeps its name; what is above it may still be reached through links. */
function realPath(path: string): Buffer {
  try {
    return realpathSync(path, 'buffer') as unknown as Buffer
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT' || path === '/') throw error
    const parent = realPath(dirname(path))
    return Buffer.concat([parent, Buffer.from(parent.length > 1 ? `/${basename(path)}` : basename(path))])
  }
}

function makeHome(home: string): void {
  try {
    mkdirSync(join(home, 'timelines'), { recursive: true, mode: 0o700 })
  } catch (cause) {
    throw new SavepointError('io.failed', `Cannot use ${home}: ${(cause as Error).message}`, {
      hint: 'Set SAVEPOINT_HOME to a directory that you can write to',
      cause,
    })
  }
}

function chooseTarget(
  home: string,
  cwd: Buffer,
  options: OpenOptions,
  env: NodeJS.ProcessEnv,
  notice: (text: string) => void,
): RegisteredTarget {
  const explicit = options.target === undefined ? undefined : targetPath(options.target, cwd)
  if (options.adopt !== undefined)
    return adoptTarget(home, explicit ?? cwd, options.adopt, realPath(resolve(cwd.toString(), options.adopt)))
  const found = explicit ? targetAt(home, explicit, notice) : findTarget(home, cwd, notice)
  if (found) return options.force ? acceptReplaced(found) : found
  const path = explicit ?? cwd
  if (options.create) return createTarget(home, path, options.force ?? false, env)
  throw new SavepointError(
    'timeline.none',
    `Cannot find a timeline for ${showPath(rawFromBytes(path))}: it is not protected yet`,
    {
      hint: 'Protect it with `savepoint snapshot`, or run your agent with `savepoint run -- COMMAND`',
    },
  )
}

/** --force: the directory that is there now is the target from now on. */
function acceptReplaced(target: RegisteredTarget): RegisteredTarget {
  const stat = statDir(target.path)
  if (!stat || sameIdentity(identityOf(stat), target.identity)) return target
  const accepted = { ...target, identity: identityOf(stat) }
  writeTarget(accepted)
  return accepted
}

function targetPath(target: string, cwd: Buffer): Buffer {
  const [, kind, name] = /^(?:(dir|env|container):)?(.*)$/s.exec(target)!
  if (kind === 'env' || kind === 'container') {
    throw new SavepointError('unsupported', `Cannot use ${target}: this version knows directories only`, {
      hint: 'Use dir:PATH',
    })
  }
  return realPath(resolve(cwd.toString(), name!))
}

function refuseBackend(backend: string): void {
  if (backend === 'auto' || backend === 'cas') return
  throw new SavepointError('unsupported', `Cannot use backend ${backend}: this version has cas only`, {
    hint: 'Set snapshots.backend to auto or cas',
  })
}

function openStore(directory: string, repair: boolean, notice: (text: string) => void): Store {
  try {
    return Store.open(directory)
  } catch (error) {
    if (!repair || !isDamage(error) || !existsSync(join(directory, 'index.sqlite'))) throw error
    setIndexAside(directory)
    notice('the index of the store could not be opened; it is made anew from the packs')
    return Store.open(directory)
  }
}

/**
 * What was interrupted is completed by the next command, whatever it is, unless somebody is at work. Where that is not
 * possible now (the disk is full), looking around still is; commands that change something try again and fail.
 */
async function recoverAtOpen(ctx: Context): Promise<void> {
  try {
    if (hasPending(ctx)) {
      await withTimelineLock({ ...ctx, lockWaitMs: 0 }, 'recover', () => recoverPending(ctx))
    }
    if (isPurgePending(ctx)) await completePurge(ctx)
  } catch (error) {
    if (!(error instanceof SavepointError)) throw error
    if (error.code !== 'busy') ctx.notice(`a command that was interrupted is not completed yet: ${error.message}`)
  }
}

function toSavepoint(ctx: Context): Savepoint {
  return {
    target: showPath(rawFromBytes(ctx.targetPath)),
    timeline: ctx.timelineId,
    foundAbove: ctx.subdirectory !== '',
    subdirectory: ctx.subdirectory,
    config: ctx.config,
    snapshot: options =>
      takeSnapshot(ctx, {
        type: 'manual',
        ...options,
        run: options?.run === undefined ? undefined : requireRun(ctx, options.run).id,
      }),
    snapshots: options => listSnapshots(ctx, options?.run),
    find: ref => resolveSnapshot(ctx.db, ref),
    head: () => requireHead(ctx.db),
    log: () => log(ctx),
    branches: () => branches(ctx),
    status: () => status(ctx),
    diff: options => diff(ctx, options ?? {}),
    changes: () => changes(ctx),
    snapshotChanges: ref => {
      const snapshot = resolveSnapshot(ctx.db, ref)
      return {
        from: snapshot.parent ?? 'nothing',
        to: snapshot.id,
        changes: snapshotChanges(ctx, snapshot),
        content: (change, side) => {
          const entry = side === 'before' ? change.before : change.after
          return entry?.kind === 'file' ? readContent(ctx.store, entry) : undefined
        },
      }
    },
    history: path => history(ctx, path),
    coverage: path => coverage(ctx, path),
    file: (ref, path) => readFile(ctx, ref, path),
    read: (ref, path) => readFile(ctx, ref, path).content,
    rollback: (ref, options) => rollback(ctx, ref, options ?? {}),
    revert: (path, options) => revert(ctx, path, options ?? {}),
    undo: options => undo(ctx, options ?? {}),
    redo: options => redo(ctx, options ?? {}),
    tags: () => ctx.db.tags(),
    tag: (name, ref) => setTag(ctx, name, ref),
    deleteTag: name => deleteTag(ctx, name),
    delete: refs => deleteSnapshots(ctx, refs),
    compact: (refs, options) => compact(ctx, refs, options ?? {}),
    prune: options => prune(ctx, options ?? {}),
    operations: () => ctx.db.operations(),
    runs: () => ctx.db.runs(),
    gc: () => gc(ctx),
    verify: options => verify(ctx, options ?? {}),
    purge: path => purge(ctx, path),
    exportSnapshot: async (ref, file, options) =>
      (await import('./export.ts')).exportSnapshot(ctx, ref, file, options ?? {}),
    importArchive: async (file, options) => (await import('./import.ts')).importArchive(ctx, file, options ?? {}),
    run: options => runCommand(ctx, options),
    close: () => closeContext(ctx),
  }
}
