/**
 * Configuration: its shape, its defaults, and how files and variables become one `Config`. This file holds what every
 * command needs and is cheap to import; schema and YAML reader are loaded only when there is something to read.
 * Keys are spelled as in the YAML files, so that a dotted key means the same in code, in errors and in the docs.
 */
import type { BackendName } from '../model/backend-name.ts'
import { defaultRedact } from './default-redact.ts'

export const archiveCompressions = ['zstd', 'gzip'] as const
export type ArchiveCompression = (typeof archiveCompressions)[number]

export const tracerNames = ['auto', 'seccomp', 'ptrace', 'ebpf', 'eslogger', 'none'] as const
export type TracerName = (typeof tracerNames)[number]

/** Infinity stands for "unlimited" wherever a limit is a number. */
export interface Config {
  snapshots: {
    disabled: boolean
    backend: BackendName
    archive_compression: ArchiveCompression
    triggers: {
      disable_pre_run: boolean
      disable_git_commits: boolean
      disable_builds: boolean
      disable_tests: boolean
      disable_idle: boolean
      disable_guard: boolean
      disable_interval: boolean
      enable_change: boolean
      idle_threshold_seconds: number
      /** The three lists add to the built-in commands. */
      build_commands: string[]
      test_commands: string[]
      guard_commands: string[]
      guard_max_hold_ms: number
    }
    exclude: {
      /** True captures what .gitignore names. */
      ignore_gitignore: boolean
      additional: string[]
      /** Captured although git ignores them. */
      keep: string[]
    }
    retention: {
      /** Archives; what is beyond stays in the store. */
      max_count: number
      /** The same for what a filesystem keeps. */
      native_max: number
      delete_initial: boolean
      auto_max: number
      manual_max: number
    }
    auto_interval_seconds: number
    max_file_bytes: number
    min_free_bytes: number
    max_store_bytes: number
  }
  tracing: {
    disable_exec: boolean
    tracer: TracerName
    /** JavaScript regular expressions, used with `redactFlags`; what they match in a command line is replaced. */
    redact: string[]
  }
}

/** What one source may set: any part of a Config. */
export type PartialConfig = DeepPartial<Config>

type DeepPartial<T> = T extends unknown[] ? T : T extends object ? { [Key in keyof T]?: DeepPartial<T[Key]> } : T

export const redactFlags = 'gi'

const gibibyte = 1024 ** 3

export const defaultConfig: Config = deepFreeze({
  snapshots: {
    disabled: false,
    backend: 'auto',
    archive_compression: 'zstd',
    triggers: {
      disable_pre_run: false,
      disable_git_commits: false,
      disable_builds: false,
      disable_tests: false,
      disable_idle: false,
      disable_guard: false,
      disable_interval: false,
      enable_change: false,
      idle_threshold_seconds: 30,
      build_commands: [],
      test_commands: [],
      guard_commands: [],
      guard_max_hold_ms: 5000,
    },
    exclude: { ignore_gitignore: false, additional: [], keep: ['.env', '.env.*'] },
    retention: {
      max_count: 10,
      native_max: Number.POSITIVE_INFINITY,
      delete_initial: false,
      auto_max: 10,
      manual_max: Number.POSITIVE_INFINITY,
    },
    auto_interval_seconds: 300,
    max_file_bytes: 5 * gibibyte,
    min_free_bytes: gibibyte,
    max_store_bytes: Number.POSITIVE_INFINITY,
  },
  tracing: { disable_exec: false, tracer: 'auto', redact: [...defaultRedact] },
} satisfies Config)

/** The dotted keys that `part` sets, in its order; sections themselves are left out. */
export function keysOf(part: object, prefix = ''): string[] {
  return Object.entries(part).flatMap(([name, value]) =>
    isSection(value) ? keysOf(value, `${prefix}${name}.`) : value == null ? [] : [`${prefix}${name}`],
  )
}

/** A new Config: `over` wins key by key over `base`; lists replace, an empty section changes nothing. */
export function mergeConfig(base: Config, over: PartialConfig): Config {
  return mergeSections(base, over) as unknown as Config
}

function mergeSections(base: object, over: object): Record<string, unknown> {
  const merged: Record<string, unknown> = { ...base }
  for (const [name, value] of Object.entries(over)) {
    if (value == null) continue
    const beneath = merged[name]
    merged[name] = isSection(value) && isSection(beneath) ? mergeSections(beneath, value) : value
  }
  return merged
}

function isSection(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function deepFreeze<T extends object>(value: T): T {
  for (const child of Object.values(value)) if (typeof child === 'object' && child !== null) deepFreeze(child)
  return Object.freeze(value)
}
