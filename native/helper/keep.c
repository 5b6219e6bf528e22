/* By a hard link, or a copy where there can be none. See keep.h. */
#define _GNU_SOURCE
#include "keep.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "holds.h"

enum { LOOKS = 64, PRIVATE = 0600 };
/* Larger ones are not copied while a program waits. */
static const off_t max_copy = 256 * 1024 * 1024;
/* Everything that changes waits for these. */
static const off_t max_early = 4 * 1024 * 1024;
enum { MAX_EARLY = 1024 };
/* The clock of files ticks; a file's time may lie before the moment of its change by as much. */
static const uint64_t tick_ns = 20000000;

/* The target; empty: nothing is kept. */
static char kept_below[PATH_ROOM];
static size_t kept_below_length;
static int spool_fd = -1, log_fd = -1;
static uint32_t last_number;
/* What was kept only because the state before the run was not captured yet. */
static uint32_t early[MAX_EARLY];
static _Atomic uint32_t early_count;
/* What changed before this is in a snapshot. */
static _Atomic uint64_t captured_ns;
static struct {
  uint32_t number;
  uint64_t at_ns;
} looks[LOOKS];

void keep_init(const char *spool) {
  if (spool == NULL) return;
  spool_fd = open(spool, O_PATH | O_DIRECTORY | O_CLOEXEC);
  log_fd = spool_fd < 0 ? -1 : openat(spool_fd, "log", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, PRIVATE);
  int target = log_fd < 0 ? -1 : openat(spool_fd, "target", O_RDONLY | O_CLOEXEC);
  if (target < 0) return;
  ssize_t length = read(target, kept_below, sizeof kept_below - 1);
  close(target);
  if (length > 0) kept_below_length = (size_t)length;
  captured_ns = realtime_ns();
}

const char *keep_target(void) { return kept_below_length == 0 ? NULL : kept_below; }

void keep_look(uint32_t number) {
  looks[number % LOOKS].number = number;
  looks[number % LOOKS].at_ns = realtime_ns();
}

void keep_captured(uint32_t number) {
  uint64_t at_ns = looks[number % LOOKS].at_ns;
  if (looks[number % LOOKS].number == number && at_ns > captured_ns) captured_ns = at_ns;
}

void keep_begun(void) {
  char name[16];
  for (uint32_t i = 0; i < early_count; i++) {
    snprintf(name, sizeof name, "%u", early[i]);
    unlinkat(spool_fd, name, 0);
  }
}

bool keep_concerns(const struct place *place) {
  size_t shorter = place->length < kept_below_length ? place->length : kept_below_length;
  if (kept_below_length == 0 || memcmp(place->path, kept_below, shorter) != 0) return false;
  if (place->length == kept_below_length || shorter == 1) return true;
  return place->length > shorter ? place->path[shorter] == '/' : kept_below[shorter] == '/';
}

/* git keeps what matters of its own; its locks and its index come and go all the time. */
static bool is_gits(const char *path) { return strstr(path, "/.git/") != NULL; }

static bool is_young(const struct place *place) { return in_ns(place->stat.st_ctim) + tick_ns >= captured_ns; }

static bool is_wanted(const struct loss *loss) {
  const struct place *place = loss->place;
  if (kept_below_length == 0 || !place->known || !place->exists || !S_ISREG(place->stat.st_mode)) return false;
  if (!loss->empties && place->stat.st_nlink > 1) return false;
  if (place->length <= kept_below_length + 1 || memcmp(place->path, kept_below, kept_below_length) != 0) return false;
  if (place->path[kept_below_length] != '/') return false;
  bool is_empty = place->stat.st_size == 0;
  if (is_young(place)) return !is_empty && !is_gits(place->path + kept_below_length);
  /* Of a repository as well: a configuration, or a hook, is nowhere else. Nor is it that an empty file was there. */
  return holds_want_changes() && early_count < MAX_EARLY && !(is_empty && loss->empties);
}

static bool copy_bytes(int from, int to) {
  if (ioctl(to, FICLONE, from) == 0) return true;
  for (;;) {
    ssize_t copied = copy_file_range(from, NULL, to, NULL, 1 << 30, 0);
    if (copied == 0) return true;
    if (copied < 0) break;
  }
  static char bytes[256 * 1024];
  for (;;) {
    ssize_t got = read(from, bytes, sizeof bytes);
    if (got <= 0) return got == 0;
    for (ssize_t done = 0; done < got;) {
      ssize_t written = write(to, bytes + done, (size_t)(got - done));
      if (written <= 0) return false;
      done += written;
    }
  }
}

static bool copy(const struct place *place, const char *name, off_t max) {
  if (place->stat.st_size > max) return false;
  int from = open(place->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (from < 0) return false;
  struct stat stat;
  bool is_same = fstat(from, &stat) == 0 && stat.st_ino == place->stat.st_ino && S_ISREG(stat.st_mode);
  int to = is_same ? openat(spool_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, PRIVATE) : -1;
  bool is_copied = to >= 0 && copy_bytes(from, to);
  if (to >= 0) {
    close(to);
    if (!is_copied) unlinkat(spool_fd, name, 0);
  }
  close(from);
  return is_copied;
}

bool keep(const struct loss *loss, struct frame *frame) {
  if (!is_wanted(loss)) return false;
  const struct place *place = loss->place;
  char name[16];
  snprintf(name, sizeof name, "%u", ++last_number);
  /* Another name would be seen by the capture that is under way. */
  bool is_early = !is_young(place);
  bool is_kept = !is_early && !loss->empties && linkat(AT_FDCWD, place->path, spool_fd, name, 0) == 0;
  if (!is_kept) is_kept = copy(place, name, is_early ? max_early : max_copy);
  if (is_early && !is_kept) return false; /* the capture has it, unless that is killed */
  if (is_early) early[early_count++] = last_number;
  frame_begin(frame, FRAME_KEPT, (uint16_t)loss->op, (uint32_t)loss->pid);
  if (!is_kept) frame_flag(frame, FLAG_TRUNCATED);
  frame_number(frame, FIELD_EXEC, loss->exec);
  frame_number(frame, FIELD_NUMBER, last_number);
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
  frame_finish(frame);
  if (write(log_fd, frame->bytes, frame->length) != (ssize_t)frame->length) unlinkat(spool_fd, name, 0);
  return true;
}
