/** What destroys data that is not in files of the target: databases, volumes, what runs in a cluster or a cloud. */
import type { Rule } from './command-kind.ts'
import { plainWords } from './command-words.ts'

const containers: Rule = (words, program) => {
  const text = [...(program === 'docker-compose' ? ['compose'] : []), ...plainWords('docker', words)].join(' ')
  return /^(?:volume (?:rm|remove|prune)|(?:system|container) prune|(?:container )?rm|compose (?:down|rm))\b/.test(text)
    ? { irreversible: true }
    : undefined
}

/** What it names is no path: the files where it is called are guarded, which may be all that there is of the data. */
const database: Rule = words =>
  /\b(?:drop|truncate|delete\s+from|flushall|flushdb|dropDatabase)\b/i.test(words.join(' '))
    ? { operands: [], irreversible: true }
    : undefined

/** Options of SQL clients that bring the statement, or ask for none. Those of a file bring what cannot be read here. */
const statement: Record<string, RegExp> = {
  psql: /^(?:-[aAbeEHnqsStwWxXz01]*[clV?]|--(?:command|list|version|help)(?:$|=))/,
  mysql: /^(?:-[ABbCfGHinNqrstUvwX]*[eVI?]|--(?:execute|version|help)(?:$|=))/,
  mongo: /^(?:--(?:eval|version|help)(?:$|=))|\.[cm]?js$/,
  redis: /^(?:-v|--(?:version|help|scan|stat|latency|bigkeys|memkeys|eval)(?:$|=))/,
}
const withFile = /^(?:-[aAbeEHnqsStwWxXz01]*f|--file(?:$|=))/
const redisValues = /^(?:-[hpsautnridD]|--(?:user|pass|sni|cacert|cert|key))$/

/**
 * What is told them on standard input, or in a file, is not among their words: it may be anything. That it cannot be brought back is
 * said of what was seen to be so.
 */
const client =
  (kind: string, isAsked: (words: readonly string[]) => boolean = () => false): Rule =>
  (words, program) => {
    const destroyed = database(words, program)
    if (destroyed) return destroyed
    if (kind === 'psql' && words.some(word => withFile.test(word))) return { operands: [] }
    return words.some(word => statement[kind]?.test(word)) || isAsked(words)
      ? undefined
      : { operands: [], onlyFed: true }
  }

const psql = client('psql')
const mysql = client('mysql')
const mongo = client('mongo')
const redis = client('redis', words =>
  words.some((word, i) => !word.startsWith('-') && !redisValues.test(words[i - 1] ?? '')),
)
/** Of sqlite3 that take the next word. */
const sqliteValues = /^--?(?:cmd|init|separator|nullvalue|newline|vfs|lookaside|maxsize|mmap|pagecache|heap)$/

/** Its database is a file, which a snapshot brings back if it lies in the target. */
const sqlite: Rule = (words, program) => {
  const plain = words.filter(word => !word.startsWith('-'))
  const named = { operands: plain, irreversible: false }
  if (database(words, program) || plain.some(word => /^\.(?:read|restore|import)\b/.test(word))) return named
  const [, ...statements] = words.filter((word, i) => !word.startsWith('-') && !sqliteValues.test(words[i - 1] ?? ''))
  return statements.length > 0 || plain.length === 0 ? undefined : { ...named, onlyFed: true }
}

/** By the words that a command begins with, options aside. */
const verbs =
  (pattern: RegExp): Rule =>
  words =>
    pattern.test(words.filter(word => !word.startsWith('-')).join(' ')) ? { irreversible: true } : undefined

const terraform: Rule = words =>
  words.includes('destroy') || (words.includes('apply') && words.some(word => /^--?destroy$/.test(word)))
    ? { irreversible: true }
    : undefined

export const outsideRules: Record<string, Rule> = {
  ...{ docker: containers, podman: containers, 'docker-compose': containers },
  ...{ psql, mysql, mariadb: mysql, mongosh: mongo, mongo, 'redis-cli': redis, sqlite3: sqlite },
  mysqladmin: database,
  dropdb: () => ({ operands: [], irreversible: true }),
  kubectl: verbs(/(?:^|\s)delete\s/),
  helm: verbs(/^(?:uninstall|delete|del|un)\b/),
  ...{ terraform, tofu: terraform, pulumi: verbs(/^destroy\b/) },
  aws: verbs(/^s3 (?:rm|rb)\b/),
  gh: verbs(/^(?:repo|release) delete\b/),
}

const containerVerbs = 'ps images run exec build logs inspect pull push version info'
/** First words with which the helper need not hold them (see `suspects` in command-kind.ts). */
export const harmlessOutside: Record<string, string> = {
  ...{ docker: containerVerbs, podman: containerVerbs },
  kubectl: 'get describe logs apply exec version config explain top',
  gh: 'pr issue api auth run workflow browse',
}
