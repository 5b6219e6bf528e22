/** What `doctor` says about who keeps snapshots: the one that is used, and of each other one why it is not. */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { nearest, PROBED_ABOVE } from '../backends/place.ts'
import { nativeBackend, nativeBackends, type Probed } from '../backends/select.ts'
import type { BackendName } from '../model/backend-name.ts'
import { whereFor } from './backend.ts'
import type { DoctorResult } from './results.ts'

type Check = DoctorResult['checks'][number]

/** Where the probes try it; gone afterwards. */
const PROBED = 'probe'

export function backendCheck(home: string, target: Buffer, wanted: BackendName): Check {
  if (wanted === 'archive')
    return {
      name: 'backend',
      state: 'ok',
      detail: 'archive: the store, and an archive of each snapshot that you ask for',
    }
  const { key, directories } = whereFor(home, target, PROBED)
  // A home that is not made yet stays so: it is tried where that would be made.
  const where = {
    key,
    directories: directories.map(place =>
      existsSync(dirname(dirname(place))) ? place : join(nearest(place), PROBED_ABOVE, key),
    ),
  }
  const asked = wanted === 'tmutil' ? [nativeBackend(wanted)!, ...nativeBackends] : nativeBackends
  const probed = asked.map(backend => ({ backend, probe: backend.probe(target, where) }))
  const chosen = wanted === 'cas' ? undefined : probed.find(one => isChosen(one, wanted))
  if (wanted !== 'auto' && wanted !== 'cas' && !chosen) {
    const { probe } = probed.find(({ backend }) => backend.name === wanted)!
    if (!probe.works) return problem(`${wanted} is configured, and does not work here: ${probe.reason}`, probe.fix)
  }
  const others = probed.filter(one => one !== chosen).map(why)
  const rest = others.length > 0 ? ` (${others.join('; ')})` : ''
  return { name: 'backend', state: 'ok', detail: `${chosen ? describe(chosen) : 'cas: the store'}${rest}` }
}

const isChosen = ({ backend, probe }: Probed, wanted: BackendName): boolean =>
  probe.works && (wanted === 'auto' || wanted === backend.name)

const describe = ({ backend }: Probed): string =>
  `${backend.name}: the filesystem keeps the snapshots that you ask for; what runs need is in the store`

const why = ({ backend, probe }: Probed): string =>
  probe.works ? `${backend.name}: works here` : `${backend.name}: ${probe.reason}`

const problem = (detail: string, fix: string): Check => ({ name: 'backend', state: 'problem', detail, fix })
