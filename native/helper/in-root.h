/* Paths of openat2 with RESOLVE_IN_ROOT: nothing leads out of the directory that they begin at. */
#ifndef SAVEPOINT_IN_ROOT_H
#define SAVEPOINT_IN_ROOT_H

#include "tracee.h"

/* As find_place. */
void find_in_root(pid_t tid, int dir, const char *path, bool follows, struct place *place);

#endif
