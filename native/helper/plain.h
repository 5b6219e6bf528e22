/*
 * Places of paths that need no resolving: nothing on the way is a link, and the process sees what we see. Most are, and to
 * find out what the others mean (tracee.h) takes three times as many system calls.
 */
#ifndef SAVEPOINT_PLAIN_H
#define SAVEPOINT_PLAIN_H

#include <linux/seccomp.h>

#include "tracee.h"

/* To be told of each call: one that gives a process another root, which is what it returns, ends all this. */
bool plain_watch(const struct seccomp_data *call);
/* The same for one that takes over another's mounts, and the root with them. */
void plain_stop(void);
/* Whether an absolute path means the same to all, as far as links are concerned. */
bool plain_holds(void);
/* Whether a path has neither `.` nor `..` nor an empty part. */
bool plain_is(const char *path);
/* Whether a path has a `..` in it, but at its beginning. */
bool goes_up(const char *path);
/* Whether the system says of the directory that it has named that it is deleted. */
bool plain_is_gone(const char *path, size_t length);
/* What is at an absolute path, into `exists` and `stat`; false when a link is on the way, or it cannot be said. */
bool plain_look(const char *path, bool follows, struct place *place);
/* As find_place, for a process that has our mounts; false: it has to be found out. */
bool find_plain_place(pid_t tid, int dir, const char *path, bool follows, struct place *place);

#endif
