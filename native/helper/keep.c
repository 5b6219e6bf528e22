/* By a hard link, or a copy where there can be none. See keep.h. */
#define _GNU_SOURCE
#include "keep.h"

#include <string.h>

#include "spool.h"
#include "told.h"

enum { LOOKS = 64, CAPTURES = 256 };
/* The clock of files ticks; a file's time may lie before the moment of its change by as much. */
static const uint64_t tick_ns = 20000000;

/* What changed before this is in a snapshot, or in the log of before.h. */
static uint64_t walked_ns;
/* When the last captures looked, the oldest first; what they had to look at was told before. */
static uint64_t captures[CAPTURES];
static size_t capture_count;
static struct {
  uint32_t number;
  uint64_t at_ns;
} looks[LOOKS];

void keep_init(void) { walked_ns = realtime_ns(); }

void keep_look(uint32_t number) {
  looks[number % LOOKS].number = number;
  looks[number % LOOKS].at_ns = realtime_ns();
}

void keep_captured(uint32_t number, bool all) {
  uint64_t at_ns = looks[number % LOOKS].at_ns;
  if (looks[number % LOOKS].number != number || at_ns <= walked_ns) return;
  if (all) {
    walked_ns = at_ns;
    capture_count = 0;
    told_forget(at_ns);
    return;
  }
  if (capture_count > 0 && captures[capture_count - 1] >= at_ns) return;
  if (capture_count == CAPTURES) memmove(captures, captures + 1, --capture_count * sizeof *captures);
  captures[capture_count++] = at_ns;
}

void keep_told(const struct place *place) {
  if (place->known && spool_inside(place) != NULL) told_add(place->path, place->length, realtime_ns());
}

bool keep_is_told(const struct place *place) { return !place->known || told_at(place->path, place->length) != 0; }

/* Whether it is in a snapshot as it is. Its path was told, then a capture looked, and it has not changed since. */
static bool is_captured(const struct place *place) {
  uint64_t changed_ns = in_ns(place->stat.st_ctim) + tick_ns;
  if (changed_ns < walked_ns) return true;
  uint64_t at_ns = told_at(place->path, place->length);
  /* What was told before the oldest that is known may have been in an older one. */
  if (at_ns == 0 || (capture_count == CAPTURES && at_ns < captures[0])) return false;
  for (size_t i = 0; i < capture_count; i++)
    if (captures[i] >= at_ns) return changed_ns < captures[i];
  return false;
}

/* git keeps what matters of its own; its locks and its index come and go all the time. What somebody else did there is another matter. */
static bool is_gits(const struct place *place, const char *inside) {
  if (strstr(inside, "/.git/") == NULL) return false;
  bool is_passing = place->length > 5 && (strcmp(place->path + place->length - 5, ".lock") == 0 || strcmp(place->path + place->length - 5, "index") == 0);
  return is_passing || keep_is_told(place);
}

static bool is_wanted(const struct loss *loss) {
  const struct place *place = loss->place;
  if (!place->known || !place->exists || !S_ISREG(place->stat.st_mode) || place->stat.st_size == 0) return false;
  if (!loss->empties && place->stat.st_nlink > 1) return false;
  if (is_captured(place)) return false;
  const char *inside = spool_inside(place);
  return inside != NULL && !is_gits(place, inside);
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
