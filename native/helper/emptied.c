/*
 * By the inode, which goes with what is moved. A call is told before it is carried out and may fail, but one that empties a file moves
 * the time of its content: the next call on that file finds out. See emptied.h.
 */
#define _GNU_SOURCE
#include "emptied.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "times.h"

/* NOT: it was not emptied after all, or its inode may be another file by now. */
static const uint64_t NOT = 1, SURE = UINT64_MAX;

/* By inode: the time of its content before the call that empties it, or one of these. */
static struct times emptied;

static bool empties(const struct call *call, enum path_op op) {
  if (op == OP_TRUNCATE) return argument(call, 1) == 0;
  if (op != OP_WRITE) return false;
  int flags = open_flags(call);
  /* Where something is already, nothing is created exclusively. */
  return (flags & O_TRUNC) != 0 && (flags & O_PATH) == 0 && (flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
}

static void set(const struct place *place, uint64_t state) {
  uint64_t inode[] = {place->stat.st_dev, place->stat.st_ino};
  times_set(&emptied, inode, sizeof inode, state);
}

/* Once it is known what became of the last call. */
static uint64_t settled(const struct place *place) {
  uint64_t inode[] = {place->stat.st_dev, place->stat.st_ino};
  uint64_t state = times_at(&emptied, inode, sizeof inode);
  if (state == 0 || state == NOT || state == SURE) return state;
  state = state == in_ns(place->stat.st_mtim) ? NOT : SURE;
  set(place, state);
  return state;
}

void emptied_note(const struct call *call, enum path_op op, const struct place *place, const struct place *to) {
  if (op == OP_RENAME && to != NULL && to->known && to->exists && settled(to) != 0) set(to, NOT);
  if (!place->known || !place->exists || !S_ISREG(place->stat.st_mode)) return;
  uint64_t state = settled(place), changed_ns = in_ns(place->stat.st_mtim);
  if (op == OP_DELETE) {
    if (state != 0) set(place, NOT);
  } else if (state != SURE && changed_ns > NOT && changed_ns != SURE && empties(call, op)) set(place, changed_ns);
}

bool emptied_is(const struct place *place) { return place->known && place->exists && S_ISREG(place->stat.st_mode) && settled(place) == SURE; }
