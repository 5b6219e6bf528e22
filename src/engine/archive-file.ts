/** Archives as files of the user: where they lie, and why they cannot be read or written. */
import { errnoOf, errnoWords, fullWords, isNoRoom, SavepointError } from '../errors/errors.ts'
import { rawFromBytes, rawFromText, rawToBytes, showPath } from '../model/raw-path.ts'
import type { Context } from './context.ts'

/** The absolute path of a file that the user named; relative ones start at cwd. */
export function archivePath(ctx: Context, verb: string, file: string): Buffer {
  if (file === '' || file.includes('\0'))
    throw new SavepointError('usage', `Cannot ${verb}: the name of the file is empty or impossible`)
  if (file === '-') {
    throw new SavepointError('usage', `Cannot ${verb} through a pipe: an archive must be a file`, {
      hint: 'Name a file, for example ./snapshot.tar.zst',
    })
  }
  const bytes = rawToBytes(rawFromText(file))
  return file.startsWith('/') ? bytes : Buffer.concat([ctx.cwd, Buffer.from('/'), bytes])
}

export const shownFile = (path: Buffer): string => showPath(rawFromBytes(path))

type Verb = 'export' | 'import' | 'archive'

/** Turns what the system or the decompressor said into an error for people. */
export function explainArchive(ctx: Context, verb: Verb, what: string, error: unknown): unknown {
  if (ctx.signal?.aborted)
    return new SavepointError('cancelled', `Cannot ${verb} ${what}: it was cancelled`, {
      hint: 'Nothing was changed',
      cause: error,
    })
  const code = errnoOf(error)
  if (error instanceof SavepointError || !code) return error
  if (isNoRoom(error)) {
    return new SavepointError('disk.full', `Cannot ${verb} ${what}: ${fullWords(error)}`, {
      hint: 'Free some space and try again; nothing was changed',
      cause: error,
    })
  }
  return new SavepointError('io.failed', `Cannot ${verb} ${what}: ${errnoWords(error)}`, {
    hint: nextStep(verb, code),
    cause: error,
  })
}

function nextStep(verb: Verb, errno: string): string {
  if (verb === 'archive') return '--backend cas keeps the snapshot in the store'
  if (errno === 'ENOENT' || errno === 'ENOTDIR')
    return `Look at how it is written${verb === 'export' ? ', or make the directory first' : ''}; a relative name starts at the current directory`
  return verb === 'export' ? 'Name a file in a directory that you may write to' : 'Look at who may read it: ls -l'
}
