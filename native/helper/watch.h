/*
 * Watches the target where the changing calls of the run are not seen: what changed is told afterwards, by anybody, and
 * mostly without who it was. By fanotify where that is allowed (root), otherwise by inotify, a watch per directory. Symbolic
 * links are not followed and mounts not entered. One thread uses it.
 */
#ifndef SAVEPOINT_WATCH_H
#define SAVEPOINT_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "frames.h"
#include "syscalls.h"

struct watching {
  const char *path;     /* absolute, without symbolic links; NULL: nothing is watched */
  const char **ignored; /* directories that are not looked into, as absolute paths */
  size_t ignored_count;
};

/* Everything that changes from now on is told. Returns what to poll for reading, or -1 when it is impossible. */
int watch_open(const struct watching *watching, struct stream *stream);
/* Tells all that has happened so far, if anything is watched. */
void watch_read(void);

/* For the two ways of watching: what they share (watch.c). */
enum { WATCH_PATH_ROOM = 8192 };
const char *watch_root(void);
/* Whether `path`, a directory, is one that is not looked into; with `above` also whether it lies in one. */
bool watch_ignores(const char *path, bool above);
/* `to`: NULL when there is no second path. `pid`: 0 when nobody knows. */
void watch_tell(enum path_op op, const char *path, const char *to, bool directory, pid_t pid);
void watch_tell_lost(enum lost_reason reason);

int inotify_watch_open(void);
void inotify_watch_read(void);
int fanotify_watch_open(void);
void fanotify_watch_read(void);

#endif
