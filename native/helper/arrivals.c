/* By the inodes of directories, which go with what is moved. See arrivals.h. */
#define _GNU_SOURCE
#include "arrivals.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "frames.h"
#include "spool.h"
#include "times.h"

/* The clock of files ticks; and as long nobody looks again at directories that were just looked at. */
static const uint64_t tick_ns = 20000000;

static uint64_t since_ns;
/* By inode: when it was last looked at; and when those last changed that may have come. By path: as the first. */
static struct times sighted, arrived, paths;

/* The directory that was last looked at, with those above it, and what came out. */
static struct {
  char path[PATH_ROOM];
  size_t length;
  uint64_t at_ns, arrived_ns;
} last;

void arrivals_since(uint64_t at_ns) {
  since_ns = at_ns;
  times_forget(&sighted, at_ns);
  times_forget(&arrived, at_ns - tick_ns);
  times_forget(&paths, at_ns);
  last.length = 0;
}

static bool is_since(struct timespec time) { return in_ns(time) + tick_ns >= since_ns; }

/* What was put into it then has times of its own, and was perhaps put there by the run, which has moved it. */
static bool was_made_since(const char *path) {
  struct statx found;
  bool is_told = statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_BTIME, &found) == 0 && (found.stx_mask & STATX_BTIME) != 0;
  struct timespec born = {.tv_sec = found.stx_btime.tv_sec, .tv_nsec = found.stx_btime.tv_nsec};
  return is_told && in_ns(born) >= since_ns;
}

/* `above_ns`: when what it lies in came, if it did. `may_have_come`: there are other names in the directory above it than there were. */
static uint64_t look(const char *path, const struct stat *stat, uint64_t above_ns, bool may_have_come, uint64_t now_ns) {
  uint64_t inode[] = {stat->st_dev, stat->st_ino};
  bool is_known = times_at(&sighted, inode, sizeof inode) != 0;
  times_set(&sighted, inode, sizeof inode, now_ns);
  if (is_known) return times_at(&arrived, inode, sizeof inode);
  bool has_come = may_have_come && is_since(stat->st_ctim) && !was_made_since(path);
  /* It may be moved out of what it came with. */
  uint64_t at_ns = has_come ? in_ns(stat->st_ctim) : above_ns;
  if (at_ns != 0) times_set(&arrived, inode, sizeof inode, at_ns);
  return at_ns;
}

/* From the target down to the directory that the first `length` bytes of the path name. */
static uint64_t look_down(const struct place *place, size_t length) {
  static char path[PATH_ROOM];
  uint64_t newest_ns = 0, now_ns = realtime_ns();
  bool may_have_come = false;
  memcpy(path, place->path, length);
  path[length] = 0;
  times_set(&paths, path, length, now_ns);
  for (size_t end = place->length - strlen(spool_inside(place)); end <= length; end++) {
    if (path[end] != '/' && path[end] != 0) continue;
    char saved = path[end];
    path[end] = 0;
    struct stat stat;
    bool is_there = lstat(path, &stat) == 0;
    uint64_t at_ns = is_there ? look(path, &stat, newest_ns, may_have_come, now_ns) : 0;
    path[end] = saved;
    if (!is_there) break;
    if (at_ns > newest_ns) newest_ns = at_ns;
    may_have_come = is_since(stat.st_mtim);
  }
  return newest_ns;
}

static size_t parent_length(const struct place *place) {
  return (size_t)((const char *)memrchr(place->path, '/', place->length) - place->path);
}

void arrivals_sight(const struct place *place) {
  size_t length = place->exists && S_ISDIR(place->stat.st_mode) ? place->length : parent_length(place);
  if (times_at(&paths, place->path, length) == 0) look_down(place, length);
}

uint64_t arrivals_above(const struct place *place) {
  uint64_t now_ns = realtime_ns();
  size_t length = parent_length(place);
  bool is_last = last.length == length && now_ns - last.at_ns < tick_ns && memcmp(last.path, place->path, length) == 0;
  if (is_last) return last.arrived_ns;
  last.arrived_ns = look_down(place, length);
  memcpy(last.path, place->path, length);
  last.length = length;
  last.at_ns = now_ns;
  return last.arrived_ns;
}
