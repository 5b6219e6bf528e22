import { SavepointError } from '../errors/errors.ts'

/** What is in a bundle is not what its format says. */
export class BadBundle extends SavepointError {
  constructor(why: string, cause?: unknown) {
    super('bundle.damaged', `Cannot use the bundle: ${why}`, {
      hint: '`savepoint bundle verify` tells everything that is wrong with it; record the command again, or get the bundle anew',
      cause,
    })
  }
}
