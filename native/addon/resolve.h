/*
 * Safe resolution: the parent of a path is opened beneath a root descriptor without following any symlink, and the last
 * component is handed to an *at call that does not follow it either. An attacker who swaps a directory for a symlink
 * gets ELOOP, never a descriptor outside the root.
 */
#ifndef SAVEPOINT_RESOLVE_H
#define SAVEPOINT_RESOLVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_NAME_BYTES = 255 };

/* Keeps the last parent open: consecutive paths of one directory cost no second resolution. */
struct resolver {
  int root;
  int parent;         /* of the last resolved path; -1 when there is none. Equals root for a top-level path. */
  char *directory;    /* the path of `parent` */
  size_t directory_length;
  size_t directory_room;
  char name[MAX_NAME_BYTES + 1]; /* the last component, "." for the root itself */
};

void resolver_init(struct resolver *resolver, int root);
void resolver_close(struct resolver *resolver);
/* Sets `parent` and `name`, or returns an errno. EINVAL: absolute, '.', '..' or empty component, NUL inside. */
int resolve(struct resolver *resolver, const char *path, size_t length);
/* openat(parent, name) of what was resolved: never follows, close-on-exec. Returns a descriptor or -1 with errno. */
int open_resolved(const struct resolver *resolver, int flags, unsigned mode);

/* Walks a NUL-separated list: "a\0b" holds two paths, "" holds one (the root). */
struct path_list {
  const char *at;
  size_t left;
  bool done;
};
void path_list_init(struct path_list *list, const uint8_t *bytes, size_t length);
bool path_list_next(struct path_list *list, const char **path, size_t *length);

#endif
