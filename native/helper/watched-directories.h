/*
 * The directories that inotify watches, by the numbers of their watches and as a tree: events name only the watch, and a
 * renamed directory takes all below it along.
 */
#ifndef SAVEPOINT_WATCHED_DIRECTORIES_H
#define SAVEPOINT_WATCHED_DIRECTORIES_H

#include <stdbool.h>

/* A directory that is watched, by the name that the events so far give it. */
struct directory {
  int number;
  struct directory *parent; /* NULL for the root, and for what was moved away */
  struct directory *first, *before, *after; /* children, and siblings */
  struct directory *next;                   /* in the bucket */
  struct directory *pending;                /* moved away, and not yet seen elsewhere */
  char name[];
};

struct directory *directory_find(int number);
/* NULL when none of that name is watched. */
struct directory *directory_child(const struct directory *parent, const char *name);
/*
 * The directory of watch `number`, which lies in `parent` under `name` (NULL: it is the root) whatever was known of it
 * before. NULL without memory, and when it cannot lie there: the tree has moved on, and the events to come will say how.
 */
struct directory *directory_place(int number, struct directory *parent, const char *name);
/* It has left its parent, and may be placed again before directory_next_moved gives it out. */
void directory_move_away(struct directory *directory);
/* The next that was moved away and not seen since, or NULL. */
struct directory *directory_next_moved(void);
/* Its children, if any, are without a parent then. */
void directory_forget(struct directory *directory);
/*
 * The path of `name` in a directory, or of itself where that is NULL, into WATCH_PATH_ROOM bytes. False when it is not
 * known where it lies (any more), or the path is too long.
 */
bool directory_path(const struct directory *directory, const char *name, char *out);

#endif
