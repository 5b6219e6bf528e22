/** A command line as a POSIX shell reads it back, for showing and for pasting. */
export const quoteCommand = (command: readonly string[]): string => command.map(quoteWord).join(' ')

export const quoteWord = (word: string): string =>
  /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
