/** How deep what a stranger sent may be: whatever walks it, JSON.stringify included, needs a stack for each level. */
export const MAX_DEPTH = 64

/** Whether a value from JSON has more levels than that. */
export const isTooDeep = (value: unknown, left = MAX_DEPTH): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (left === 0 || Object.values(value).some(each => isTooDeep(each, left - 1)))
