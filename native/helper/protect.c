/* By the paths that calls name, in the view of the helper. See protect.h. */
#include "protect.h"

#include <string.h>

static const char *directory;
static size_t directory_length;
static const char word[] = "/savepoint-writes-its-home";

void protect_init(const char *path) {
  directory = path;
  directory_length = path == NULL ? 0 : strlen(path);
}

bool protect_concerns(const struct place *place) {
  return directory != NULL && place->length >= directory_length && memcmp(place->path, directory, directory_length) == 0 &&
         (place->length == directory_length || place->path[directory_length] == '/');
}

static bool is_inside(const struct place *place) { return place->known && protect_concerns(place); }

static bool is_word(const struct place *place) {
  size_t length = sizeof word - 1;
  return place->known && place->length > length && strncmp(place->path, "/proc/", 6) == 0 &&
         memcmp(place->path + place->length - length, word, length) == 0;
}

bool protect_refuses(struct process *process, enum path_op op, const struct place *place, const struct place *to) {
  if (directory == NULL) return false;
  if (op == OP_CREATE && is_word(place)) process->is_savepoint = true;
  if (process->is_savepoint) return false;
  /* Another name for a file of it, outside, changes nothing of it. */
  return (op != OP_LINK && is_inside(place)) || (to != NULL && is_inside(to));
}
