/** The keys of the JSON shapes, in their order. */
export const keys = (value: object): string[] => Object.keys(value)

export const snapshotKeys = [
  'id',
  'type',
  'label',
  'backend',
  'created_at',
  'size_delta',
  'native_ref',
  'damage',
  'parent',
  'run',
  'stats',
  'tags',
  'head',
  'partial',
  'read',
  'turn',
]
export const restoreKeys = [
  'snapshot',
  'dry_run',
  'to',
  'files',
  'empty_dirs',
  'changes',
  'left_alone',
  'kept_dirs',
  'hidden',
  'gone',
  'unprotected',
  'mixed',
  'uncaptured',
  'would_stop',
  'still_open',
  'safety',
  'late_edits',
  'operation',
]
export const operationKeys = [
  'id',
  'kind',
  'at',
  'state',
  'summary',
  'before',
  'after',
  'head_before',
  'head_after',
  'rule',
]
export const changeKeys = ['kind', 'path', 'from', 'before', 'after']
export const runKeys = [
  'id',
  'command',
  'cwd',
  'started_at',
  'ended_at',
  'exit_code',
  'signal',
  'pid',
  'before',
  'after',
  'interrupted',
  'continues',
]
export const listedRunKeys = [...runKeys, 'taken_back']
