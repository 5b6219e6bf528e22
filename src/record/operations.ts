/** What a path was seen as, in the words of the manifest. */
import { SEEN } from '../tracers/record-log.ts'
import type { OperationName } from './manifest.ts'

const operationBits: [bits: number, name: OperationName][] = [
  [SEEN.read, 'read'],
  [SEEN.written | SEEN.moved, 'write'],
  [SEEN.lookedAt, 'existence'],
  [SEEN.listed, 'directory'],
  [SEEN.deleted, 'delete'],
  [SEEN.executed, 'execute'],
]

export const operationsOf = (as: number): OperationName[] =>
  operationBits.filter(([bits]) => as & bits).map(([, name]) => name)
