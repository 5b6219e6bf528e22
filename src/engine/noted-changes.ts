/** Which changes of files have been noted: between two captures, the same one by the same execution is noted once. */
import type { Raw } from '../model/raw-path.ts'
import { kindOfEvent } from '../model/trace.ts'
import type { NewEvent } from '../timeline/event-rows.ts'

/** Beyond this many, what was noted is forgotten. */
const MAX_NOTED = 100_000

export class NotedChanges {
  private readonly noted = new Set<string>()
  /** How often a name was given up. */
  private readonly lives = new Map<Raw | undefined, number>()
  /** Names that were renamed, and nothing has been seen under them since: by whom, and to what. */
  private readonly renamed = new Map<Raw, string>()

  /** Whether it is to be noted; then it is from now on. */
  isNew(file: NewEvent): boolean {
    const { at, op, path, to, exec } = file
    // Of what was only watched it is not known who it was: each second may have been another.
    const who = exec === 0 ? `at ${Math.floor(at / 1000)}` : exec
    const name = to ?? path
    const made = `${who}\0created\0${name}\0${this.lives.get(name)}`
    const kind = kindOfEvent(file)
    const key = kind === 'created' ? made : `${who}\0${op}\0${path}\0${to}\0${this.lives.get(path)}`
    if (this.isSecondTry(file, `${who}\0${to}`)) return false
    // What comes under a name that was given up is another file.
    if (op === 'delete' || op === 'rename' || op === 'exchange') for (const each of [path, to]) this.endLife(each)
    // Who makes a file also writes it.
    if (this.noted.has(key) || (kind === 'modified' && this.noted.has(made))) return false
    if (this.noted.size + this.lives.size + this.renamed.size >= MAX_NOTED) {
      this.forget()
      this.lives.clear()
    }
    this.noted.add(key)
    return true
  }

  /** It did not happen: done again, it is no second try. */
  unmove(path: Raw | undefined): void {
    if (path !== undefined) this.renamed.delete(path)
  }

  /** What comes from now on is noted again. */
  forget(): void {
    this.noted.clear()
    this.renamed.clear()
  }

  /** `mv` first asks not to replace anything, and when that fails renames the same again: one of the two had no effect. */
  private isSecondTry({ op, path, to }: NewEvent, by: string): boolean {
    const isAgain = op === 'rename' && path !== undefined && this.renamed.get(path) === by
    for (const each of [path, to]) if (each !== undefined) this.renamed.delete(each)
    if (op === 'rename' && path !== undefined) this.renamed.set(path, by)
    return isAgain
  }

  private endLife(name: Raw | undefined): void {
    if (name !== undefined) this.lives.set(name, (this.lives.get(name) ?? 0) + 1)
  }
}
