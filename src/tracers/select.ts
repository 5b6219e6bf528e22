/**
 * Which tracer a run uses. `auto` takes the first that works here and keeps the reasons of those before it; one that the user
 * named is used or refused, never replaced.
 */
import type { TracerName } from '../config/config.ts'
import { SavepointError } from '../errors/errors.ts'
import { probeEslogger } from './eslogger-command.ts'
import { type HelperDriver, probeHelper } from './probe-helper.ts'

export interface TracerProbe {
  name: Exclude<TracerName, 'auto'>
  works: boolean
  detail: string
  /** Programs started under it cannot gain any (sudo). */
  withoutPrivileges: boolean
}

export interface ChosenTracer {
  name: HelperDriver | 'eslogger' | 'none'
  /** Those that were looked at, in the order of preference; the last one is used. */
  probes: TracerProbe[]
}

/** What a tracer can, beyond telling what is executed. */
export interface TracerTraits {
  /** Tells every change of a file, before it happens. */
  seesChanges: boolean
  /** Can let an execution wait, so that a snapshot comes before it. */
  canHold: boolean
}

/** `probed`: see probeHelper; of the first. */
type Probe = (probed?: string) => Omit<TracerProbe, 'name'>
const nothing: Probe = () => ({
  works: true,
  detail: 'commands and changes are not traced',
  withoutPrivileges: false,
})

/** In the order of preference: who can hold comes first. A probe is cheap and never throws. */
const tracers: { name: TracerProbe['name']; probe: Probe; traits: TracerTraits }[] = [
  { name: 'seccomp', probe: probed => probeHelper('seccomp', probed), traits: { seesChanges: true, canHold: true } },
  { name: 'ptrace', probe: () => probeHelper('ptrace'), traits: { seesChanges: false, canHold: true } },
  { name: 'ebpf', probe: () => probeHelper('ebpf'), traits: { seesChanges: false, canHold: false } },
  { name: 'eslogger', probe: () => probeEslogger(), traits: { seesChanges: false, canHold: false } },
  { name: 'none', probe: nothing, traits: { seesChanges: false, canHold: false } },
]

/** All of them, for whoever wants to know. */
export const probeTracers = (): TracerProbe[] => tracers.map(({ name, probe }) => ({ name, ...probe() }))

export const traitsOf = (name: TracerProbe['name']): TracerTraits => tracers.find(each => each.name === name)!.traits

/** Throws when `wanted` is named and does not work here; `hint`: what to do about that, where it was named. */
export function selectTracer(wanted: TracerName, hint: string, probed?: string): ChosenTracer {
  const probes: TracerProbe[] = []
  for (const { name, probe } of tracers) {
    if (wanted !== 'auto' && wanted !== name) continue
    const result = { name, ...probe(probed) }
    probes.push(result)
    if (result.works) return { name: name as ChosenTracer['name'], probes }
  }
  throw new SavepointError('unsupported', `Cannot use the tracer ${wanted}: ${probes[0]!.detail}`, { hint })
}
