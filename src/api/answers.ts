/** Answers that hold as long as nobody writes to the timeline: those who watch it ask the same again and again. */
import type { Savepoint } from '../index.ts'

const MAX_ANSWERS = 100
/** Of all together. */
const MAX_CHARS = 4 * 1024 * 1024

export class Answers {
  private readonly texts = new Map<string, string>()
  private chars = 0
  private of: Savepoint | undefined
  private version: string | undefined

  /** `question`: the same text for the same. */
  async answer(savepoint: Savepoint, question: string, make: () => Promise<string>): Promise<string> {
    const version = savepoint.version()
    if (this.of !== savepoint || this.version !== version) this.forget()
    this.of = savepoint
    this.version = version
    const known = this.texts.get(question)
    if (known !== undefined && version !== undefined) return known
    const text = await make()
    const isValid = version !== undefined && this.of === savepoint && savepoint.version() === version
    if (isValid && this.texts.size < MAX_ANSWERS && this.chars + text.length <= MAX_CHARS) {
      this.texts.set(question, text)
      this.chars += text.length
    }
    return text
  }

  private forget(): void {
    this.texts.clear()
    this.chars = 0
  }
}
