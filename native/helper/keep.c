/* By a copy, or of what is large by a hard link. See keep.h. */
#define _GNU_SOURCE
#include "keep.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arrivals.h"
#include "names.h"
#include "shut-directory.h"
#include "spool.h"
#include "times.h"

/* MAX_OWN: files that the run has made, of one directory that it moves out of the target. They are not gone by that, and a snapshot waits for each. */
/* MAX_EDITED: it is copied while the run waits. */
enum { LOOKS = 64, CAPTURES = 256, MAX_OWN = 1000, MAX_EDITED = 4 << 20 };
/* The clock of files ticks; a file's time may lie before the moment of its change by as much. */
static const uint64_t tick_ns = 20000000;

/* What the run has made before this is kept whatever it is, if it is not captured yet. 0: nothing; UINT64_MAX: goes on. */
static uint64_t all_until_ns;
/* What changed before this is in a snapshot, or in the log of before.h. And where that began. */
static uint64_t walked_ns, begun_ns;
/* Of what was the target until it was moved: what changed in there before this is in a snapshot. And when what is now in its place came. */
static uint64_t former_walked_ns[SPOOL_FORMER], came_ns;
/* By paths inside of the target. */
static struct times told;
/* When the last captures looked, the oldest first; what they had to look at was told before. */
static uint64_t captures[CAPTURES];
static size_t capture_count;
static struct {
  uint32_t number;
  uint64_t at_ns;
} looks[LOOKS];

void keep_init(void) {
  walked_ns = begun_ns = realtime_ns();
  arrivals_since(walked_ns);
}

void keep_all(void) { all_until_ns = UINT64_MAX; }

void keep_begun(void) {
  if (all_until_ns != 0) all_until_ns = realtime_ns();
}

static bool is_kept_as_all(const struct place *place) { return in_ns(place->stat.st_ctim) < all_until_ns; }

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
    times_forget(&told, at_ns);
    arrivals_since(at_ns);
    return;
  }
  if (capture_count > 0 && captures[capture_count - 1] >= at_ns) return;
  if (capture_count == CAPTURES) memmove(captures, captures + 1, --capture_count * sizeof *captures);
  captures[capture_count++] = at_ns;
}

/* 0: it came later. */
static uint64_t present_walked_ns(void) { return came_ns == 0 || walked_ns > came_ns + tick_ns ? walked_ns : 0; }

void keep_moved(const struct place *from, const struct place *to) {
  if (!spool_moves(from) && !spool_moves(to)) return;
  unsigned which = spool_follow();
  if (which != SPOOL_NONE) former_walked_ns[which] = present_walked_ns();
  came_ns = realtime_ns();
}

void keep_told(const struct place *place) {
  const char *inside = place->known ? spool_inside(place) : NULL;
  if (inside == NULL) return;
  arrivals_sight(place);
  times_set(&told, inside, strlen(inside), realtime_ns());
}

static uint64_t told_at(const struct place *place) {
  const char *inside = spool_inside(place);
  return inside == NULL ? 0 : times_at(&told, inside, strlen(inside));
}

bool keep_is_told(const struct place *place) {
  return !place->known || told_at(place) != 0 || names_at(place) != 0;
}

/* Whether it is in a snapshot as it is. Its path was told, then a capture looked, and it has not changed since. */
static bool is_captured(const struct place *place) {
  unsigned which = spool_which(place);
  uint64_t safe_ns = which < SPOOL_FORMER ? former_walked_ns[which] : present_walked_ns();
  uint64_t changed_ns = in_ns(place->stat.st_ctim) + tick_ns, arrived_ns = arrivals_above(place) + tick_ns;
  if (changed_ns < safe_ns && arrived_ns < safe_ns) return true;
  /* The others were of what is there now. */
  if (which != SPOOL_PRESENT || safe_ns == 0) return false;
  uint64_t at_ns = told_at(place);
  /* What was told before the oldest that is known may have been in an older one. */
  if (at_ns == 0 || (capture_count == CAPTURES && at_ns < captures[0])) return false;
  for (size_t i = 0; i < capture_count; i++)
    if (captures[i] >= at_ns) return changed_ns < captures[i];
  return false;
}

/* Of the two times the earlier one, as in notify-path.c, where that can be a change since then. */
static bool is_later(const struct place *place) {
  uint64_t at_ns = told_at(place), named_ns = names_at(place);
  if (named_ns > at_ns) at_ns = named_ns;
  uint64_t status = in_ns(place->stat.st_ctim), content = in_ns(place->stat.st_mtim);
  uint64_t changed = content > at_ns && content < status ? content : status;
  return at_ns != 0 && changed > at_ns + WRITE_NS;
}

bool keep_is_edited(const struct place *place) {
  return place->known && place->exists && place->stat.st_size <= MAX_EDITED && is_later(place);
}

/* git keeps what matters of its own; its locks and its index come and go all the time. What somebody else did there is another matter. */
static bool is_gits(const struct place *place, const char *inside) {
  if (strstr(inside, "/.git/") == NULL) return false;
  bool is_passing = place->length > 5 && (strcmp(place->path + place->length - 5, ".lock") == 0 || strcmp(place->path + place->length - 5, "index") == 0);
  return is_passing || keep_is_told(place);
}

/* Nothing but its name: worth a record only where somebody else has made it. Programs make such things for a moment all the time. */
static bool is_mere_name(const struct place *place) { return S_ISLNK(place->stat.st_mode) || place->stat.st_size == 0; }

static bool is_wanted(const struct loss *loss) {
  const struct place *place = loss->place;
  if (!place->known || !place->exists || !(S_ISREG(place->stat.st_mode) || S_ISLNK(place->stat.st_mode))) return false;
  bool as_all = is_kept_as_all(place);
  if (is_mere_name(place) && (loss->empties || (!as_all && keep_is_told(place)))) return false;
  /* The other names may lie in the directory that goes. */
  bool may_be_last = loss->own_left != NULL && !keep_is_told(place);
  if (!loss->empties && place->stat.st_nlink > 1 && !may_be_last && !as_all) return false;
  const char *inside = spool_inside(place);
  return inside != NULL && !is_gits(place, inside);
}

/* The state before the run stays anyway; of what somebody else has written since, the snapshot that has it must. */
static bool is_safe_by_others(const struct place *place) {
  uint64_t changed_ns = in_ns(place->stat.st_ctim) + tick_ns, arrived_ns = arrivals_above(place) + tick_ns;
  bool has_come = came_ns != 0 && spool_which(place) == SPOOL_PRESENT;
  if (!has_come && changed_ns < begun_ns && arrived_ns < begun_ns) return false;
  return !keep_is_told(place) || is_later(place);
}

/* The directory may go as well, and is in no snapshot then. */
static void put_directory(struct frame *frame, const struct place *place) {
  static char directory[PATH_ROOM];
  struct stat above;
  size_t length = (size_t)((const char *)strrchr(place->path, '/') - place->path);
  memcpy(directory, place->path, length);
  directory[length] = 0;
  if (lstat(directory, &above) != 0) return;
  uint32_t attributes[] = {above.st_mode, above.st_uid, above.st_gid};
  frame_bytes(frame, FIELD_DIRECTORY, attributes, sizeof attributes);
}

static bool put_safe(struct frame *frame, const struct loss *loss) {
  size_t length;
  const char *path = spool_path(loss->place, &length);
  frame_begin(frame, FRAME_SAFE, (uint16_t)loss->op, (uint32_t)loss->pid);
  frame_long(frame, FIELD_MTIME, in_ns(loss->place->stat.st_mtim));
  frame_bytes(frame, FIELD_PATH, path, length);
  return true;
}

/* `number` 0: it could not be kept. */
static void put_kept(struct frame *frame, const struct loss *loss, uint32_t number, uint64_t at_ns) {
  const struct place *place = loss->place;
  frame_begin(frame, FRAME_KEPT, (uint16_t)loss->op, (uint32_t)loss->pid);
  if (number == 0) frame_flag(frame, FLAG_TRUNCATED);
  if (!keep_is_told(place)) frame_flag(frame, FLAG_OTHERS);
  else if (is_later(place)) frame_flag(frame, FLAG_LATER);
  frame_number(frame, FIELD_EXEC, loss->exec);
  frame_number(frame, FIELD_NUMBER, number);
  frame_number(frame, FIELD_MODE, place->stat.st_mode);
  frame_number(frame, FIELD_UID, place->stat.st_uid);
  frame_number(frame, FIELD_GID, place->stat.st_gid);
  put_directory(frame, place);
  frame_long(frame, FIELD_TIME, at_ns);
  frame_long(frame, FIELD_MTIME, in_ns(place->stat.st_mtim));
  size_t length;
  const char *path = spool_path(place, &length);
  frame_bytes(frame, FIELD_PATH, path, length);
  frame_bytes(frame, FIELD_TO, place->path, place->length);
}

bool keep(const struct loss *loss, struct frame *frame) {
  if (!is_wanted(loss)) return false;
  const struct place *place = loss->place;
  if (is_captured(place)) return is_safe_by_others(place) && put_safe(frame, loss);
  uint64_t at_ns = realtime_ns();
  bool is_spared = loss->own_left != NULL && keep_is_told(place);
  if (is_spared && *loss->own_left == 0) return false;
  uint32_t number = is_spared ? spool_link(place) : 0;
  /* Nor are they worth a copy. */
  if (is_spared && number == 0) return false;
  if (is_spared) --*loss->own_left;
  if (number == 0 && !loss->empties) number = spool_copy_up_to(place, SPOOL_SMALL);
  if (number == 0 && !loss->empties) number = spool_link(place);
  if (number == 0) number = spool_copy(place);
  put_kept(frame, loss, number, at_ns);
  if (!spool_log(frame) && number != 0) {
    /* Nobody would know what it is. */
    spool_remove(number);
    put_kept(frame, loss, 0, at_ns);
  }
  return true;
}

void keep_below(const struct loss *loss, struct frame *frame, struct stream *stream) {
  struct shut_directory shut;
  DIR *list = shut_open(loss->place, &shut);
  struct place *below = list == NULL ? NULL : malloc(sizeof *below);
  uint32_t own_left = MAX_OWN;
  struct loss lost = *loss;
  lost.place = below;
  if (lost.own_left == NULL) lost.own_left = &own_left;
  for (struct dirent *entry; below != NULL && (entry = readdir(list)) != NULL;) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    int length = snprintf(below->path, sizeof below->path, "%s/%s", loss->place->path, entry->d_name);
    if (length < 0 || (size_t)length >= sizeof below->path || lstat(below->path, &below->stat) != 0) continue;
    below->length = (size_t)length;
    below->known = below->exists = true;
    if (S_ISDIR(below->stat.st_mode)) keep_below(&lost, frame, stream);
    else if (keep(&lost, frame)) stream_put(stream, frame);
  }
  free(below);
  if (list != NULL) shut_close(list, &shut);
}
