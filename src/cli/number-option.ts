import { InvalidArgumentError } from 'commander'

/** Readers of numbers on the command line; commander puts the message behind the option's name. */
export const atMost = (text: string): number => wholeNumber(text, 1)
export const notNegative = (text: string): number => wholeNumber(text, 0)

function wholeNumber(text: string, least: number): number {
  const value = Number(text)
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value) || value < least) {
    throw new InvalidArgumentError(`It must be a whole number from ${least} up.`)
  }
  return value
}
