/* Frames in the log, and copies of files. See before.h. */
#define _GNU_SOURCE
#include "before.h"

#include <pthread.h>
#include <unistd.h>

#include "holds.h"
#include "spool.h"

/* Everything that changes waits for the copies, and they need room. */
enum { MAX_COPIES = 1024 };
static uint32_t copies[MAX_COPIES];
static uint32_t copied;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct frame frame; /* under the lock */

static uint32_t copy(const struct place *place) {
  uint32_t number = copied < MAX_COPIES ? spool_copy(place) : 0;
  if (number != 0) copies[copied++] = number;
  return number;
}

/* What is at the place. Of a file with several names also what lies outside is told: the others may be inside. */
static void note(enum path_op op, const struct place *place) {
  bool is_linked = place->exists && !S_ISDIR(place->stat.st_mode) && place->stat.st_nlink > 1;
  if (!place->known || !(is_linked || spool_inside(place) != NULL)) return;
  frame_begin(&frame, FRAME_BEFORE, (uint16_t)op, 0);
  frame_bytes(&frame, FIELD_PATH, place->path, place->length);
  if (!place->exists) frame_flag(&frame, FLAG_ABSENT);
  else {
    frame_number(&frame, FIELD_MODE, place->stat.st_mode);
    frame_number(&frame, FIELD_UID, place->stat.st_uid);
    frame_number(&frame, FIELD_GID, place->stat.st_gid);
    frame_long(&frame, FIELD_MTIME, in_ns(place->stat.st_mtim));
    /* It may have had more names a moment ago. */
    if (!S_ISDIR(place->stat.st_mode)) frame_long(&frame, FIELD_INODE, place->stat.st_ino);
  }
  if (place->exists && S_ISREG(place->stat.st_mode)) {
    uint32_t number = copy(place);
    if (number != 0) frame_number(&frame, FIELD_NUMBER, number);
    else frame_flag(&frame, FLAG_TRUNCATED);
  }
  if (place->exists && S_ISLNK(place->stat.st_mode)) {
    char target[PATH_ROOM];
    ssize_t length = readlink(place->path, target, sizeof target);
    if (length > 0) frame_bytes(&frame, FIELD_TO, target, (size_t)length);
  }
  spool_log(&frame);
}

static void note_move(enum path_op op, const struct place *place, const struct place *to) {
  if (!place->exists || (spool_inside(place) == NULL && spool_inside(to) == NULL)) return;
  frame_begin(&frame, FRAME_MOVED, (uint16_t)op, 0);
  frame_bytes(&frame, FIELD_PATH, place->path, place->length);
  frame_bytes(&frame, FIELD_TO, to->path, to->length);
  spool_log(&frame);
}

void before_change(enum path_op op, const struct place *place, const struct place *to) {
  if (!holds_want_changes() || spool_target() == NULL) return;
  pthread_mutex_lock(&lock);
  if (op == OP_LINK) note(op, to);
  else if (op != OP_RENAME && op != OP_EXCHANGE) note(op, place);
  else if (place->known && to->known) {
    /* It may go where nothing is captured. */
    if (place->exists && !S_ISDIR(place->stat.st_mode)) note(op, place);
    if (op == OP_RENAME) note(op, to);
    note_move(op, place, to);
  }
  pthread_mutex_unlock(&lock);
}

void before_captured(void) {
  pthread_mutex_lock(&lock);
  frame_begin(&frame, FRAME_CAPTURED, 0, 0);
  if (spool_target() != NULL) spool_log(&frame);
  while (copied > 0) spool_remove(copies[--copied]);
  pthread_mutex_unlock(&lock);
}
