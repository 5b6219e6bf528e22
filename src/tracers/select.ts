/**
 * Which tracer a run uses. `auto` takes the first that works here and keeps the others' reasons; one that the user named
 * is used or refused, never replaced.
 */
import { type TracerName, tracerNames } from '../config/config.ts'
import { SavepointError } from '../errors/errors.ts'
import { probeHelper } from './helper.ts'

export interface TracerProbe {
  name: TracerName
  works: boolean
  detail: string
  /** Programs started under it cannot gain any (sudo). */
  withoutPrivileges?: boolean
}

export interface ChosenTracer {
  name: 'seccomp' | 'none'
  /** All that were looked at, in the order of preference. */
  probes: TracerProbe[]
}

const later = 'not in this version yet'

export function probeTracers(): TracerProbe[] {
  return tracerNames
    .filter(name => name !== 'auto')
    .map(name => {
      if (name === 'seccomp') return { name, ...probeHelper() }
      if (name === 'none') return { name, works: true, detail: 'commands and changes are not traced' }
      return { name, works: false, detail: later }
    })
}

/** Throws when `wanted` is named and does not work here. */
export function selectTracer(wanted: TracerName): ChosenTracer {
  if (wanted === 'none') return { name: 'none', probes: [] }
  const probes = probeTracers()
  if (wanted === 'auto') {
    const first = probes.find(probe => probe.works)!
    return { name: first.name as ChosenTracer['name'], probes }
  }
  const probe = probes.find(({ name }) => name === wanted)!
  if (probe.works) return { name: wanted as ChosenTracer['name'], probes }
  throw new SavepointError('unsupported', `Cannot use the tracer ${wanted}: ${probe.detail}`, {
    hint: 'Leave tracing.tracer at auto, or set it to none',
  })
}
