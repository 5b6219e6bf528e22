/** Processes that go on when what they were started by is over, and how they are named to people. */

export interface Running {
  pid: number
  name: string
  /** Its group, where it would be another process by the time that it is ended. */
  group?: number
}

/** Named at most. */
const NAMED = 5

/** What a restore has to say of a file that it replaced or removed under them. `path` as it is shown. */
export function writesToOldFile(path: string, running: readonly Running[]): string {
  const [they, them] = running.length === 1 ? ['it writes', 'it'] : ['they write', 'them']
  return `${path} is open for writing in ${nameRunning(running).names}: what ${they} from here on goes to the old file, which nobody can see; restart ${them}`
}

/** For a sentence: their names, and the command that ends them. */
export function nameRunning(running: readonly Running[]): { names: string; kill: string } {
  const more = running.length > NAMED ? ` and ${running.length - NAMED} more` : ''
  // A process gives itself any name that it likes.
  const names = running.slice(0, NAMED).map(({ name, pid }) => `${name.replace(/[^ -~]/g, '?')} (${pid})`)
  return { names: `${names.join(', ')}${more}`, kill: `kill ${running.map(killed).join(' ')}` }
}

const killed = ({ pid, group }: Running): string => (group === undefined ? `${pid}` : `-- -${group}`)
