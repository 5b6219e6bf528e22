/** Removal of packages: a project's, which lie in its directory, and the system's, which no snapshot has. */
import type { Rule } from './command-kind.ts'
import { directoryOf, plainWords } from './command-words.ts'

const node = 'uninstall|remove|rm|un|unlink|r|prune|ci'
/** What removes packages of a project, or of an environment that may lie in it, by the first words. */
const ofProjects: Record<string, string> = {
  ...{ npm: node, yarn: node, pnpm: node, bun: node },
  ...{
    pip: 'uninstall',
    pipx: 'uninstall|uninstall-all|uninject',
    uv: 'remove|pip uninstall',
    poetry: 'remove',
    pipenv: 'uninstall',
  },
  ...{ conda: 'remove|uninstall', mamba: 'remove|uninstall' },
  ...{ cargo: 'remove|rm', composer: 'remove', bundle: 'remove', gem: 'uninstall' },
}
const system = 'remove|purge|autoremove|autopurge|erase|uninstall|rm'
const ofSystems: Record<string, string> = {
  ...{ apt: system, 'apt-get': system, aptitude: system },
  ...{ dnf: system, microdnf: system, yum: system, zypper: system },
  ...{ apk: 'del', brew: 'uninstall|remove|rm|autoremove', snap: 'remove' },
}
/** The same for those that say it by an option. */
const byOption: Record<string, RegExp> = {
  dpkg: /^(?:-[rP]|--(?:remove|purge))$/,
  rpm: /^(?:-e[a-z]*|-[^q-][a-z]*e|--erase)$/,
  pacman: /^(?:-R[a-z]*|--remove)$/,
}

const begins = (program: string, words: readonly string[], verbs: string): boolean =>
  new RegExp(`^(?:${verbs})(?: |$)`).test(plainWords(program, words).slice(0, 2).join(' '))

const inProject: Rule = (words, program) => {
  const directory = directoryOf(program, words)
  return begins(program, words, ofProjects[program]!)
    ? { operands: directory === undefined ? [] : [directory] }
    : undefined
}
const inSystem: Rule = (words, program) =>
  begins(program, words, ofSystems[program]!) ? { irreversible: true } : undefined
const optional: Rule = (words, program) =>
  words.some(word => byOption[program]!.test(word)) ? { irreversible: true } : undefined

const forEach = <T>(names: Record<string, unknown>, value: T): Record<string, T> =>
  Object.fromEntries(Object.keys(names).map(name => [name, value]))

export const packageRules: Record<string, Rule> = {
  ...forEach(ofProjects, inProject),
  ...forEach(ofSystems, inSystem),
  ...forEach(byOption, optional),
}

/** Options and first words by which the helper knows them (see `suspects` in command-kind.ts). */
export const packageOptions: Record<string, string> = { dpkg: 'rP', rpm: 'e', pacman: 'R' }
const nodeVerbs = 'run run-script test t start install i add exec view ls list info pack publish version init config'
const pythonVerbs = 'install run add sync lock update show list tree build publish env venv tool python shell'
export const harmlessForPackages: Record<string, string> = {
  ...forEach(ofSystems, 'install update upgrade show search list info add'),
  ...{ npm: nodeVerbs, yarn: nodeVerbs, pnpm: nodeVerbs, bun: nodeVerbs },
  ...{ uv: pythonVerbs, poetry: pythonVerbs, pipenv: pythonVerbs, conda: 'run install list info env create activate' },
  pipx: 'install inject run list upgrade upgrade-all environment ensurepath',
  cargo: 'build b check c test t run r bench doc clippy fmt add update install metadata fetch new init tree',
  ...{ composer: 'install update require run-script show', bundle: 'exec install update check', gem: 'install list' },
}
