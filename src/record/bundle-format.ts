/** What a bundle is made of. Apart from `src/record/manifest.ts`: who records a command needs no schema. */
export const FORMAT_VERSION = 1
export const MANIFEST_NAME = 'manifest.json'
export const BLOBS_NAME = 'blobs.parquet'
