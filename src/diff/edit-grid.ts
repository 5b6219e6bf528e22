/** Which elements belong to no common subsequence: `deleted` of the first sequence, `inserted` of the second. */
export interface Marks {
  deleted: Uint8Array
  inserted: Uint8Array
  coarse: boolean
}

/** The part [aLow, aHigh) × [bLow, bHigh) of the edit grid. */
export interface Box {
  aLow: number
  aHigh: number
  bLow: number
  bHigh: number
}

/** Takes equal elements off both ends of the box. */
export function trim(a: Int32Array, b: Int32Array, box: Box): void {
  while (box.aLow < box.aHigh && box.bLow < box.bHigh && a[box.aLow] === b[box.bLow]) {
    box.aLow++
    box.bLow++
  }
  while (box.aLow < box.aHigh && box.bLow < box.bHigh && a[box.aHigh - 1] === b[box.bHigh - 1]) {
    box.aHigh--
    box.bHigh--
  }
}
