/*
 * Which execution a process comes from whose parents are gone. A fork is not told, but it has the memory of whoever forked, and
 * each execution has its own, laid out at random. Every call needs the lock of processes.h.
 */
#ifndef SAVEPOINT_LINEAGE_H
#define SAVEPOINT_LINEAGE_H

#include "processes.h"

/* What a process was when it ended: what it forked may live on. */
void lineage_ended(const struct process *process);
/* Looks among those that ended and those in `buckets`. Fills exec, parent and depth; false when it cannot be told. */
bool lineage_find(pid_t orphan, struct process *const *buckets, size_t count, struct process *origin);
/* Where the memory of a process lies; 0 when it has none (any more), or it may not be known. */
uint64_t lineage_image(pid_t pid);

#endif
