/* By the paths that calls name, in the view of the helper. See protect.h. */
#include "protect.h"

#include <stdlib.h>
#include <string.h>

static const char **directories;
static size_t directory_count;
static const char writes[] = "/savepoint-writes-its-home", lends[] = "/savepoint-lends-its-rights";

bool protect_add(const char *directory) {
  const char **more = realloc(directories, (directory_count + 1) * sizeof *more);
  if (more == NULL) return false;
  directories = more;
  directories[directory_count++] = directory;
  return true;
}

const char *protect_directory(size_t index) { return index < directory_count ? directories[index] : NULL; }

static bool is_within(const char *path, size_t path_length, const char *directory, size_t length) {
  return path_length >= length && memcmp(path, directory, length) == 0 && (path_length == length || path[length] == '/');
}

bool protect_concerns(const struct place *place) {
  for (size_t i = 0; i < directory_count; i++) {
    if (is_within(place->path, place->length, directories[i], strlen(directories[i]))) return true;
  }
  return false;
}

bool protect_is_in(const struct place *place) {
  for (size_t i = 0; i < directory_count; i++) {
    if (is_within(directories[i], strlen(directories[i]), place->path, place->length)) return true;
  }
  return false;
}

static bool is_inside(const struct place *place) { return place->known && protect_concerns(place); }

static bool is_word(const struct place *place, const char *word) {
  size_t length = strlen(word);
  return place->known && place->length > length && strncmp(place->path, "/proc/", 6) == 0 &&
         memcmp(place->path + place->length - length, word, length) == 0;
}

static void note_words(struct process *process, enum path_op op, const struct place *place) {
  if (op != OP_CREATE && op != OP_DELETE) return;
  if (op == OP_CREATE && is_word(place, writes)) process->is_savepoint = true;
  if (is_word(place, lends)) process->lends = process->is_savepoint && op == OP_CREATE;
}

bool protect_trusts(const struct process *process) {
  const struct process *parent = process_find(process->ppid);
  return process->is_savepoint || (parent != NULL && parent->lends);
}

bool protect_refuses(struct process *process, enum path_op op, const struct place *place, const struct place *to) {
  if (directory_count == 0) return false;
  note_words(process, op, place);
  if (process->is_savepoint) return false;
  /* Another name for a file of it, outside, changes nothing of it. */
  return (op != OP_LINK && is_inside(place)) || (to != NULL && is_inside(to));
}
