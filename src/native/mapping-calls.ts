/** What processes have mapped into memory (native/addon/mappings.c). */
export interface MappingCalls {
  /**
   * Each file that a process whose mappings this user may see can write through memory, as MAPPING and a path; some of them several
   * times. `byText`: as on kernels before 6.11, which answer no question about one mapping.
   */
  sharedMappings(byText: boolean): Buffer
}

/** Layout of one mapping. The device is that of the filesystem as mountinfo has it, which on btrfs stat does not tell. */
export const MAPPING = {
  major: 0, // u32
  minor: 4, // u32
  ino: 8, // u64
  pathLength: 16, // u32; 0 where device and inode are all that is needed
  path: 24,
} as const
