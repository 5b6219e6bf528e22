/** A command line as a person would type it, for showing. */
export const quoteCommand = (command: readonly string[]): string => command.map(quoteWord).join(' ')

const quoteWord = (word: string): string =>
  /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
