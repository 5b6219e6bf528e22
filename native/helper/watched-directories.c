/* See watched-directories.h. */
#define _GNU_SOURCE
#include "watched-directories.h"

#include <stdlib.h>
#include <string.h>

#include "watch.h"

enum { BUCKETS = 16384, MAX_DEPTH = 2048 };

static struct directory *buckets[BUCKETS], *root, *moved_away;

struct directory *directory_find(int number) {
  struct directory *directory = buckets[(unsigned)number % BUCKETS];
  while (directory != NULL && directory->number != number) directory = directory->next;
  return directory;
}

struct directory *directory_child(const struct directory *parent, const char *name) {
  struct directory *child = parent->first;
  while (child != NULL && strcmp(child->name, name) != 0) child = child->after;
  return child;
}

static void detach(struct directory *directory) {
  if (directory->parent != NULL && directory->parent->first == directory) directory->parent->first = directory->after;
  if (directory->before != NULL) directory->before->after = directory->after;
  if (directory->after != NULL) directory->after->before = directory->before;
  directory->parent = directory->before = directory->after = NULL;
}

static void attach(struct directory *directory, struct directory *parent) {
  directory->parent = parent;
  if (parent == NULL) return;
  directory->after = parent->first;
  if (parent->first != NULL) parent->first->before = directory;
  parent->first = directory;
}

bool directory_path(const struct directory *directory, const char *name, char *out) {
  const char *parts[MAX_DEPTH];
  size_t count = 0, length = strlen(watch_root());
  if (name != NULL) parts[count++] = name;
  for (; directory != root; directory = directory->parent) {
    if (directory == NULL || count == MAX_DEPTH) return false;
    parts[count++] = directory->name;
  }
  memcpy(out, watch_root(), length + 1);
  if (length == 1) length = 0;
  while (count-- > 0) {
    size_t part = strlen(parts[count]);
    if (length + part + 2 > WATCH_PATH_ROOM) return false;
    out[length++] = '/';
    memcpy(out + length, parts[count], part + 1);
    length += part;
  }
  return true;
}

void directory_forget(struct directory *directory) {
  struct directory **at = &buckets[(unsigned)directory->number % BUCKETS];
  while (*at != directory) at = &(*at)->next;
  *at = directory->next;
  for (at = &moved_away; *at != NULL; at = &(*at)->pending)
    if (*at == directory) {
      *at = directory->pending;
      break;
    }
  while (directory->first != NULL) detach(directory->first);
  detach(directory);
  free(directory);
}

static bool is_within(const struct directory *directory, const struct directory *above) {
  while (directory != NULL && directory != above) directory = directory->parent;
  return directory != NULL;
}

struct directory *directory_place(int number, struct directory *parent, const char *name) {
  struct directory *known = directory_find(number);
  if (known != NULL && known->parent == parent && strcmp(known->name, name) == 0) return known;
  /* A directory does not lie in itself. */
  if (known != NULL && (known == root || is_within(parent, known))) return NULL;
  size_t length = strlen(name) + 1;
  struct directory *directory = calloc(1, sizeof *directory + length);
  if (directory == NULL) return NULL;
  memcpy(directory->name, name, length);
  directory->number = number;
  if (known != NULL) {
    directory->first = known->first;
    for (struct directory *child = known->first; child != NULL; child = child->after) child->parent = directory;
    known->first = NULL;
    directory_forget(known);
  }
  attach(directory, parent);
  if (parent == NULL) root = directory;
  directory->next = buckets[(unsigned)number % BUCKETS];
  buckets[(unsigned)number % BUCKETS] = directory;
  return directory;
}

void directory_move_away(struct directory *directory) {
  detach(directory);
  directory->pending = moved_away;
  moved_away = directory;
}

struct directory *directory_next_moved(void) {
  struct directory *next = moved_away;
  if (next == NULL) return NULL;
  moved_away = next->pending;
  next->pending = NULL;
  return next;
}
