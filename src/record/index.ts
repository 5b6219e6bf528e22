/**
 * Bundles, for whoever works with them. Not part of `src/index.ts`: what every command loads must not grow by what few need. The verb
 * `record` itself is in `src/record/record.ts`, and needs less than this.
 */
export { Bundle, type BundleFile } from './bundle.ts'
export { type BundleChange, changesOf, isChanged, kindOf } from './entries.ts'
export { importBundle } from './import-bundle.ts'
export { type BundleRestoreOptions, restoreBundle } from './restore-bundle.ts'
export type * from './results.ts'
export { verifyBundle } from './verify-bundle.ts'
