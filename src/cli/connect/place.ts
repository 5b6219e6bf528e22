/** A settings file, and what becomes of its text ('' when there is none). */
export interface Place {
  file: string
  put(text: string): string
  take(text: string): string
}
