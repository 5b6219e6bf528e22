/** Where the helper program is, and which of its drivers work here. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const PROBE_TIMEOUT_MS = 5000

/** From dist/ and from src/tracers/ alike: it lies in build/ at the root of the package. */
export function helperFile(): string | undefined {
  return ['../build/savepoint-helper', '../../build/savepoint-helper']
    .map(relative => fileURLToPath(new URL(relative, import.meta.url)))
    .find(file => existsSync(file))
}

export const hasHelper = (): boolean => helperFile() !== undefined

/** The drivers that the helper has (native/helper/drivers.c). */
export type HelperDriver = 'seccomp' | 'ebpf' | 'ptrace' | 'none'

export interface HelperProbe {
  works: boolean
  /** What it cannot, or why it does not work here. */
  detail: string
  /** Programs started under it cannot gain any (sudo). */
  withoutPrivileges: boolean
}

/** Cheap, and never throws. `probed`: what it has said of this driver to whoever started us, as "0 works". */
export function probeHelper(driver: HelperDriver, probed?: string): HelperProbe {
  if (probed) return toProbe(Number(probed[0]), probed.slice(2).trim())
  const file = helperFile()
  if (!file) return { works: false, detail: 'build/savepoint-helper does not exist', withoutPrivileges: false }
  const args = ['--driver', driver, '--probe']
  const { status, stdout, error } = spawnSync(file, args, { timeout: PROBE_TIMEOUT_MS, encoding: 'utf8' })
  return toProbe(status, error ? error.message : stdout.trim())
}

const toProbe = (status: number | null, detail: string): HelperProbe => ({
  works: status === 0,
  detail: detail || `the helper ended with ${status}`,
  withoutPrivileges: detail.includes('without new privileges'),
})
