/* Where on its filesystem the subvolume of a number lies. */
#ifndef SAVEPOINT_SUBVOLUME_PLACE_H
#define SAVEPOINT_SUBVOLUME_PLACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Whether the subvolume `number` of the filesystem that descriptor `theirs` of a process lies on is `directory` (a path of ours),
 * lies in it, or has it in it. Where that cannot be told, as by an ordinary user, whether the directory is on that filesystem.
 */
bool subvolume_takes(pid_t tid, int theirs, uint64_t number, const char *directory);

#endif
