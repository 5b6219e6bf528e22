/* /proc/PID/mountinfo, taken apart. */
#ifndef SAVEPOINT_MOUNT_TABLE_H
#define SAVEPOINT_MOUNT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct mount {
  unsigned long id;
  unsigned major, minor; /* of the whole filesystem, which for btrfs is not what stat says */
  char *root;            /* what of the filesystem is mounted, and where */
  char *point;
  char type[32];
};

struct mount_table {
  struct mount *mounts;
  size_t count;
};

/* Reads until the end; false without memory. What the table had is gone. */
bool mount_table_read(struct mount_table *table, FILE *info);
const struct mount *mount_find(const struct mount_table *table, unsigned long id);

#endif
