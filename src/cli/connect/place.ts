/** A settings file, and what becomes of its text ('' when there is none). */
export interface Place {
  file: string
  /** It lies in a directory of the agent's own, which goes with the last thing in it. */
  isInOwnDirectory?: boolean
  put(text: string): string
  take(text: string): string
  /** Whether an entry is in it that we wrote, also one of a former installation. */
  hasOurs(text: string): boolean
}
