/* Which file a path of a process means, on which mount, and how far below the root of that mount it lies. */
#ifndef SAVEPOINT_MOUNT_SPOT_H
#define SAVEPOINT_MOUNT_SPOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tracee.h"

/* A file, and the mount that it was reached by. */
struct spot {
  uint64_t mount, inode;
  uint32_t major, minor;
  bool is_directory;
};

/* What is found out of a path there. */
struct found {
  struct spot spot; /* of the nearest that exists */
  size_t length;    /* how much of the path that is */
  size_t start;     /* where in the path begins what is below the root of the mount */
  uint64_t unique;  /* a number of the mount that no other ever has; 0: the system knows none */
};

/* In the view of thread `tid`, through its /proc/TID/root. False when it cannot be told. */
bool mount_spot_find(pid_t tid, const struct place *place, struct found *found);
/* Whether `wanted` is what lies at the path in our view, whose last `missing` bytes are of what does not exist. */
bool mount_spot_is_ours(const struct place *place, size_t missing, const struct spot *wanted);

#endif
