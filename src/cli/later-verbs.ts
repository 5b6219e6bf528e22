import { SavepointError } from '../errors/errors.ts'

/** Verbs of the design that come with later work: known, so that nobody takes them for a typing error. */
const laterVerbs: Record<string, string> = {
  env: 'manage environments',
  container: 'protect containers',
  repl: 'start the REPL',
  fork: 'fork a snapshot',
  tournament: 'run a tournament',
  ui: 'open the web page',
}

/** Throws for a verb that this version only knows by name. */
export function refuseLaterVerb(verb: string | undefined): void {
  if (verb === undefined || !Object.hasOwn(laterVerbs, verb)) return
  throw new SavepointError('unsupported', `Cannot ${laterVerbs[verb]} (${verb}): not in this version yet`, {
    hint: '`savepoint --help` lists what is there',
    data: { verb },
  })
}
