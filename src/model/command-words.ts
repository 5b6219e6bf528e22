/** The words of a command line: which program it is, and which words are no options, nor values of options. */

/** Names of programs that run a script, which is then the program. */
const interpreters = /^(?:node|nodejs|python[\d.]*|bun|deno)$/
/** Shells do what their scripts say, and so are not those; but a pattern may name one. */
export const shells = ['sh', 'bash', 'dash', 'zsh', 'ksh', 'ash'] as const
const shellOptionWithValue = /^(?:[-+]\w*[oO]|--(?:rcfile|init-file))$/
/** Programs that are many: the first word says which. */
const multiCall = /^(?:busybox|toybox|coreutils)$/

/** What a command may destroy that does not say where. */
export const ANYWHERE = ['/']

export const baseName = (path: string): string => path.slice(path.lastIndexOf('/') + 1)
const scriptName = (path: string): string => baseName(path).replace(/\.(?:[cm]?js|py)$/, '')

export interface Call {
  /** Without its directory; of an interpreter with a script or a module, that one's. */
  program: string
  /** What follows it. */
  words: readonly string[]
}

export function callOf([first = '', ...rest]: readonly string[]): Call {
  const name = baseName(first)
  if (multiCall.test(name) && rest.length > 0) return { program: baseName(rest[0]!), words: rest.slice(1) }
  if (!interpreters.test(name)) return { program: name, words: rest }
  const module = name.startsWith('python') ? pythonModule(rest) : undefined
  if (module) return module
  const [script] = rest
  if (script === undefined || script.startsWith('-')) return { program: name, words: rest }
  // `bun remove` is a command of its own, `bun remove.ts` a script.
  if (name === 'bun' && !/[./]/.test(script)) return { program: name, words: rest }
  return { program: scriptName(script), words: rest.slice(1) }
}

/** `python3 -I -m pip …` is pip. */
function pythonModule(words: readonly string[]): Call | undefined {
  const at = words.findIndex(word => !/^-[bBdEiIOPqsSuvx]+$/.test(word))
  return words[at] === '-m' && at + 1 < words.length
    ? { program: words[at + 1]!, words: words.slice(at + 2) }
    : undefined
}

/** The script that an interpreter runs, options before it passed over; for patterns, which name scripts as programs. */
export function scriptCall([first = '', ...rest]: readonly string[]): (Call & { path: string }) | undefined {
  const isShell = shells.some(shell => shell === baseName(first))
  if (!isShell && !interpreters.test(baseName(first))) return undefined
  const isOption = (word: string): boolean => word.startsWith('-') || (isShell && word.startsWith('+'))
  // `bash -euo pipefail script`
  const isValue = (i: number): boolean => isShell && i > 0 && shellOptionWithValue.test(rest[i - 1]!)
  const at = rest.findIndex((word, i) => !isOption(word) && !isValue(i))
  // `sh -ec 'text'` has none.
  const hasText = isShell && rest.slice(0, at).some(word => /^-\w*c/.test(word))
  if (at < 0 || hasText) return undefined
  return { program: scriptName(rest[at]!), path: rest[at]!, words: rest.slice(at + 1) }
}

/** Options that take the next word, by program. */
const withValue: Record<string, RegExp> = {
  make: /^(?:-[CfIoW]|--(?:directory|file|makefile|include-dir|old-file|what-if))$/,
  npm: /^(?:-[Cw]|--(?:prefix|workspace|loglevel|registry|cache|userconfig))$/,
  pnpm: /^(?:-[CF]|--(?:dir|filter|reporter|loglevel))$/,
  yarn: /^(?:-j|--(?:cwd|registry|cache-folder|modules-folder|include|exclude|from|jobs))$/,
  bun: /^--cwd$/,
  cargo: /^(?:-C|--(?:manifest-path|config|color))$/,
  go: /^-C$/,
  mvn: /^(?:-[flPst]|-pl|--(?:file|projects|settings))$/,
  gradle: /^(?:-[pbcI]|--(?:project-dir|build-file|init-script))$/,
  pip: /^--(?:python|log|proxy|cache-dir)$/,
  apt: /^(?:-[acot]|--(?:host-architecture|config-file|option|(?:target|default)-release))$/,
  dnf: /^(?:-[cdeRx]|--(?:config|installroot|releasever|repo|repoid|(?:enable|disable)repo|exclude(?:pkgs)?|setopt))$/,
  docker: /^(?:-[Hcfp]|--(?:context|host|config|log-level|file|project-name|project-directory))$/,
}
withValue.gmake = withValue.make!
withValue.gradlew = withValue.gradle!
withValue.mvnw = withValue.mvn!
withValue.podman = withValue.docker!
for (const name of ['apt-get', 'aptitude']) withValue[name] = withValue.apt!
for (const name of ['microdnf', 'yum']) withValue[name] = withValue.dnf!
const directoryOption = /^(?:-C|--(?:prefix|dir|cwd|directory|project-dir))$/

/** The words that are neither options nor values of them, nor variables of make's. */
export function plainWords(program: string, words: readonly string[]): string[] {
  const takesNext = withValue[program]
  const isMake = program === 'make' || program === 'gmake'
  return words.filter((word, i) => {
    const before = words[i - 1]
    if (word.startsWith('-') || (before !== undefined && takesNext?.test(before))) return false
    if (!isMake) return true
    // `-j 4`: the number may stand apart.
    return !/^\w+[:+?]?=/.test(word) && !(before !== undefined && /^-[jl]$/.test(before) && /^[\d.]+$/.test(word))
  })
}

/** Where an option (`--prefix DIR`, `-C DIR`) makes the program work; undefined when none does. */
export function directoryOf(program: string, words: readonly string[]): string | undefined {
  for (const [i, word] of words.entries()) {
    const [, name = '', value] = /^(--[\w-]+)=(.*)$/s.exec(word) ?? []
    if (directoryOption.test(name)) return value
    if (directoryOption.test(word) && withValue[program]?.test(word)) return words[i + 1]
  }
  return undefined
}
