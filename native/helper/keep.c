/* By a hard link, or a copy where there can be none. See keep.h. */
#define _GNU_SOURCE
#include "keep.h"

#include <string.h>

#include "spool.h"

enum { LOOKS = 64 };
/* The clock of files ticks; a file's time may lie before the moment of its change by as much. */
static const uint64_t tick_ns = 20000000;

/* What changed before this is in a snapshot, or in the log of before.h. */
static _Atomic uint64_t captured_ns;
static struct {
  uint32_t number;
  uint64_t at_ns;
} looks[LOOKS];

void keep_init(void) { captured_ns = realtime_ns(); }

void keep_look(uint32_t number) {
  looks[number % LOOKS].number = number;
  looks[number % LOOKS].at_ns = realtime_ns();
}

void keep_captured(uint32_t number) {
  uint64_t at_ns = looks[number % LOOKS].at_ns;
  if (looks[number % LOOKS].number == number && at_ns > captured_ns) captured_ns = at_ns;
}

/* git keeps what matters of its own; its locks and its index come and go all the time. */
static bool is_gits(const char *path) { return strstr(path, "/.git/") != NULL; }

static bool is_wanted(const struct loss *loss) {
  const struct place *place = loss->place;
  if (!place->known || !place->exists || !S_ISREG(place->stat.st_mode) || place->stat.st_size == 0) return false;
  if (!loss->empties && place->stat.st_nlink > 1) return false;
  if (in_ns(place->stat.st_ctim) + tick_ns < captured_ns) return false;
  const char *inside = spool_inside(place);
  return inside != NULL && !is_gits(inside);
}

bool keep(const struct loss *loss, struct frame *frame) {
  if (!is_wanted(loss)) return false;
  const struct place *place = loss->place;
  uint32_t number = loss->empties ? 0 : spool_link(place);
  if (number == 0) number = spool_copy(place);
  frame_begin(frame, FRAME_KEPT, (uint16_t)loss->op, (uint32_t)loss->pid);
  if (number == 0) frame_flag(frame, FLAG_TRUNCATED);
  frame_number(frame, FIELD_EXEC, loss->exec);
  frame_number(frame, FIELD_NUMBER, number);
  frame_number(frame, FIELD_MODE, place->stat.st_mode);
  frame_number(frame, FIELD_UID, place->stat.st_uid);
  frame_number(frame, FIELD_GID, place->stat.st_gid);
  /* The directory may go as well, and is in no snapshot then. */
  struct stat above;
  const char *slash = strrchr(place->path, '/');
  char directory[PATH_ROOM];
  memcpy(directory, place->path, (size_t)(slash - place->path));
  directory[slash - place->path] = 0;
  if (lstat(directory, &above) == 0) {
    uint32_t attributes[] = {above.st_mode, above.st_uid, above.st_gid};
    frame_bytes(frame, FIELD_DIRECTORY, attributes, sizeof attributes);
  }
  frame_long(frame, FIELD_TIME, realtime_ns());
  frame_long(frame, FIELD_MTIME, in_ns(place->stat.st_mtim));
  frame_bytes(frame, FIELD_PATH, place->path, place->length);
  if (!spool_log(frame) && number != 0) spool_remove(number);
  return true;
}
