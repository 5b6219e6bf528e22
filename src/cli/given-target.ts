/** The target as it was named: by -t, or by the path of the shell. What links lead to it may lead elsewhere when a run is over. */
import { realpathSync } from 'node:fs'
import { resolve } from 'node:path'

export interface GivenTarget {
  path: string
  /** Where it led at the start. */
  led: string
}

/** undefined: nothing is there, or it is no path. */
export function givenTarget(target: string | undefined): GivenTarget | undefined {
  if (target === undefined) return givenByShell(process.env.PWD)
  const path = absolute(target.replace(/^dir:/, ''))
  const led = path && leadsTo(path)
  return led === undefined ? undefined : { path: path!, led }
}

function givenByShell(path: string | undefined): GivenTarget | undefined {
  const led = path?.startsWith('/') ? leadsTo(path) : undefined
  return led !== undefined && led === leadsTo('.') ? { path: path!, led } : undefined
}

/** Where it leads by now, if that is elsewhere, and there is nothing else in the place of what it led to. */
export function leadsElsewhere({ path, led }: GivenTarget): string | undefined {
  const now = leadsTo(path)
  return now === led || (leadsTo(led) ?? led) !== led ? undefined : now
}

function leadsTo(path: string): string | undefined {
  try {
    const found = realpathSync.native(path)
    // Not a name that can be typed.
    return found.includes('\ufffd') ? undefined : found
  } catch {
    return undefined
  }
}

/** undefined where the shell stands in a directory that was removed. */
function absolute(path: string): string | undefined {
  try {
    return resolve(path)
  } catch {
    return undefined
  }
}
