import { addon } from '../native/addon.ts'
import { textFromBytes } from './raw-path.ts'

/**
 * `args`, the last arguments of this process, with the bytes that they were given with. Node replaces what is not UTF-8 by
 * U+FFFD, so that a name with such bytes would mean another file.
 */
export function exactArguments(args: string[]): string[] {
  const given = addon.rawArgv().toString('latin1').split('\0').slice(-args.length)
  return given.length === args.length ? given.map(bytes => textFromBytes(Buffer.from(bytes, 'latin1'))) : args
}
