import { resolve } from 'node:path'
import { type Raw, rawFromBytes, rawFromText } from './raw-path.ts'

/** The absolute path of what a person named, seen from the directory `cwd`; both may have bytes that are not UTF-8. */
export const resolveRaw = (cwd: Buffer, text: string): Raw => resolve(rawFromBytes(cwd), rawFromText(text))
