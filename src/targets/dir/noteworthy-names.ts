/** Names in a listing that decide how the directory is treated. */
import * as record from './walk-record.ts'

export interface NoteworthyNames {
  gitignore: boolean
  savepointignore: boolean
  hasGit: boolean
  isGitDir: boolean
}

/** Names that decide how a directory is treated. Looks at lengths first: this runs for every entry of every capture. */
export function noteworthyNames(records: Buffer): NoteworthyNames {
  const found: NoteworthyNames = { gitignore: false, savepointignore: false, hasGit: false, isGitDir: false }
  let gitParts = 0
  record.forEachRecord(records, at => {
    const length = record.recordLength(records, at)
    if (length > 76) return
    const name = record.recordName(records, at)
    if (name === '.git') found.hasGit = true
    else if (name === '.gitignore') found.gitignore = record.recordType(records, at) === record.S_IFREG
    else if (name === '.savepointignore') found.savepointignore = record.recordType(records, at) === record.S_IFREG
    else if (name === 'HEAD' || name === 'objects' || name === 'refs') gitParts++
  })
  found.isGitDir = gitParts === 3
  return found
}
