/* Reading one entry. See read.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "blake3.h"
#include "read.h"

/* How often a name may turn into another object between statx and open. */
enum { MAX_REPLACEMENTS = 16 };
/* How many clock ticks one attempt waits for a file to rest. */
enum { MAX_TICKS = 2 };
/* A write stamps the file first and copies its data then: one that takes longer than this is not looked for. */
static const int64_t in_flight_ns = 60 * (int64_t)1000000000;
/* A ctime further ahead of our clock than this comes from another clock (NFS, FUSE): waiting proves nothing. */
static const int64_t foreign_clock_ns = 1000000000;
/* The longest that one call of readEntries sleeps in total. */
static const int64_t wait_budget_ns = 500000000;

static enum read_outcome fail(struct meta *meta, int error) {
  meta->error = error;
  return READ_DONE;
}

/* The clock that stamps inodes. */
static int64_t coarse_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool same_object(const struct statx *a, const struct statx *b) {
  return a->stx_ino == b->stx_ino && a->stx_dev_major == b->stx_dev_major && a->stx_dev_minor == b->stx_dev_minor &&
         (a->stx_mode & S_IFMT) == (b->stx_mode & S_IFMT);
}

static bool same_version(const struct statx *a, const struct statx *b) {
  return a->stx_size == b->stx_size && to_ns(a->stx_mtime) == to_ns(b->stx_mtime) &&
         to_ns(a->stx_ctime) == to_ns(b->stx_ctime);
}

/* Of another clock, or so old that no write can still be under way. */
static bool is_old(const struct statx *status) {
  int64_t age_ns = coarse_now_ns() - to_ns(status->stx_ctime);
  return age_ns > in_flight_ns || age_ns < -foreign_clock_ns;
}

/*
 * The first of the two looks around a read. `*proven` means: if the second look agrees, nobody wrote in between. Two
 * things could hide a write from it. It may share the clock tick of this look, so a file that was changed in the
 * present tick is looked at again after it. Or it may have stamped the file long ago and still be copying; SEEK_DATA
 * takes the inode's lock, so it returns only when such a write is over.
 */
static int first_look(struct reader *reader, int fd, struct statx *status, bool *proven) {
  *proven = is_old(status);
  if (*proven) return 0;
  for (int ticks = 0;; ticks++) {
    int64_t started_ns = coarse_now_ns();
    lseek(fd, 0, SEEK_DATA); // reads use pread, so the position is free
    int error = status_of_fd(fd, status);
    if (error != 0) return error;
    int64_t ahead_ns = to_ns(status->stx_ctime) - started_ns;
    *proven = ahead_ns < 0 || ahead_ns > foreign_clock_ns;
    if (*proven || ticks == MAX_TICKS || reader->wait_left_ns <= 0) return 0;
    struct timespec tick;
    clock_getres(CLOCK_REALTIME_COARSE, &tick);
    int64_t wait_ns = ahead_ns + tick.tv_nsec;
    if (wait_ns > reader->wait_left_ns) wait_ns = reader->wait_left_ns;
    reader->wait_left_ns -= wait_ns;
    nanosleep(&(struct timespec){.tv_sec = wait_ns / 1000000000, .tv_nsec = wait_ns % 1000000000}, NULL);
  }
}

static int open_regular(const struct reader *reader, const struct statx *status) {
  int flags = O_RDONLY | O_NONBLOCK;
  // O_NOATIME is for the owner and for privilege; others would pay a failed open per file.
  int quiet = status->stx_uid == reader->euid || reader->euid == 0 ? O_NOATIME : 0;
  int fd = open_resolved(&reader->resolver, flags | quiet, 0);
  if (fd < 0 && errno == EPERM && quiet != 0) fd = open_resolved(&reader->resolver, flags, 0);
  return fd;
}

/* Reads up to `wanted` bytes from the start. Returns how many, or -1 with errno. */
static ssize_t read_whole(int fd, uint8_t *out, size_t wanted, size_t expected) {
  size_t got = 0;
  while (got < wanted) {
    ssize_t n = pread(fd, out + got, wanted - got, (off_t)got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    got += (size_t)n;
    // The one byte more that was asked for did not come: that was the end, no second call is needed.
    if (n == 0 || got == expected) break;
  }
  return (ssize_t)got;
}

static bool has_hole(int fd, const struct statx *status) {
  if (status->stx_size == 0 || status->stx_blocks * 512 >= status->stx_size) return false;
  off_t hole = lseek(fd, 0, SEEK_HOLE);
  return hole >= 0 && (uint64_t)hole < status->stx_size;
}

/* Stores what was read, if it fits behind what `out` holds already. */
static enum read_outcome finish(struct reader *reader, struct meta *meta, size_t content, size_t xattrs) {
  if (content + xattrs > reader->size) return fail(meta, EFBIG);
  if (content + xattrs > reader->size - reader->used) return READ_FULL;
  meta->content_offset = (uint32_t)reader->used;
  meta->content_length = (uint32_t)content;
  meta->xattr_offset = (uint32_t)(reader->used + content);
  meta->xattr_length = (uint32_t)xattrs;
  reader->used += content + xattrs;
  return READ_DONE;
}

static size_t read_xattrs(struct reader *reader, const struct xattr_target *target, struct meta *meta, size_t content) {
  size_t start = reader->used + content;
  size_t room = start < reader->size ? reader->size - start : 0;
  size_t needed;
  int error = xattr_encode(target, &reader->scratch, reader->out + start, room, &needed);
  if (error != 0) meta->flags |= FLAG_XATTRS_FAILED;
  return needed;
}

/*
 * One attempt. `*stable` says whether what it stored in `out` and `meta` is one version of the file. `expected` is what was
 * seen under the name before the file was opened; of an old file that is good enough for the first of the two looks.
 */
static enum read_outcome read_once(struct reader *reader, int fd, const struct statx *expected, bool is_first,
                                   struct meta *meta, bool *stable) {
  struct xattr_target target = xattr_open_file(fd);
  struct statx before = *expected, after;
  bool proven = true, is_known = is_first && before.stx_size <= reader->max_content && is_old(&before);
  int error = is_known ? 0 : status_of_fd(fd, &before);
  if (error == 0 && !same_object(expected, &before)) return READ_REPLACED;
  if (error == 0 && !is_known && before.stx_size <= reader->max_content) error = first_look(reader, fd, &before, &proven);
  if (error != 0) return fail(meta, error);

  *stable = true;
  meta_from_status(meta, &before);
  meta->flags = has_hole(fd, &before) ? FLAG_SPARSE : 0;
  size_t size = before.stx_size, room = reader->size - reader->used;
  if (before.stx_size > reader->max_content) {
    meta->flags |= FLAG_TOO_BIG;
    return finish(reader, meta, 0, read_xattrs(reader, &target, meta, 0));
  }
  if (size > reader->size) return fail(meta, EFBIG);
  if (size > room) return READ_FULL;

  // One byte more than there should be, where there is room: shows growth, and saves the read that finds the end.
  ssize_t got = read_whole(fd, reader->out + reader->used, size < room ? size + 1 : size, size);
  if (got < 0) return fail(meta, errno);
  size_t content = (size_t)got > size ? size : (size_t)got;
  size_t xattrs = read_xattrs(reader, &target, meta, content);
  error = status_of_fd(fd, &after);
  if (error != 0) return fail(meta, error);
  if (!same_object(expected, &after)) return READ_REPLACED;
  *stable = proven && (size_t)got == size && same_version(&before, &after);
  if (!*stable) {
    meta_from_status(meta, &after);
    meta->flags |= FLAG_UNSTABLE;
  }
  return finish(reader, meta, content, xattrs);
}

static enum read_outcome read_open_file(struct reader *reader, int fd, const struct statx *expected, struct meta *meta) {
  size_t used = reader->used;
  for (uint32_t attempt = 0;; attempt++) {
    bool stable = true;
    enum read_outcome outcome = read_once(reader, fd, expected, attempt == 0, meta, &stable);
    if (stable || attempt >= reader->retries) {
      // While it is still in the processor's cache.
      if (outcome == READ_DONE) blake3_hash(reader->out + meta->content_offset, meta->content_length, meta->id);
      return outcome;
    }
    reader->used = used;
    *meta = (struct meta){0};
  }
}

static enum read_outcome read_regular(struct reader *reader, const struct statx *status, struct meta *meta) {
  int fd = open_regular(reader, status);
  if (fd < 0) {
    meta_from_status(meta, status);
    // A symlink (ELOOP) or a socket (ENXIO) has taken the place of the file.
    return errno == ELOOP || errno == ENXIO ? READ_REPLACED : fail(meta, errno);
  }
  enum read_outcome outcome = read_open_file(reader, fd, status, meta);
  close(fd);
  return outcome;
}

static enum read_outcome read_other(struct reader *reader, const struct statx *expected, struct meta *meta) {
  int fd = open_resolved(&reader->resolver, O_PATH, 0);
  if (fd < 0) return fail(meta, errno);
  struct statx status;
  char link[PATH_MAX];
  ssize_t length = 0;
  enum read_outcome outcome = READ_DONE;
  int error = status_of_fd(fd, &status);
  if (error == 0 && !same_object(expected, &status)) {
    outcome = READ_REPLACED;
  } else if (error == 0) {
    meta_from_status(meta, &status);
    if (S_ISLNK(status.stx_mode)) {
      length = readlinkat(fd, "", link, sizeof link);
      error = length < 0 ? errno : (size_t)length == sizeof link ? ENAMETOOLONG : 0;
    }
  }
  if (error != 0) {
    outcome = fail(meta, error);
  } else if (outcome == READ_DONE) {
    size_t content = (size_t)length;
    if (content > reader->size) {
      outcome = fail(meta, EFBIG);
    } else if (content > reader->size - reader->used) {
      outcome = READ_FULL;
    } else {
      struct xattr_target target = xattr_path_only(fd);
      if (content > 0) memcpy(reader->out + reader->used, link, content);
      outcome = finish(reader, meta, content, read_xattrs(reader, &target, meta, content));
    }
  }
  close(fd);
  return outcome;
}

enum read_outcome reader_read(struct reader *reader, const char *path, size_t length, struct meta *meta) {
  int error = resolve(&reader->resolver, path, length);
  if (error != 0) {
    *meta = (struct meta){.error = error};
    return READ_DONE;
  }
  for (int i = 0; i < MAX_REPLACEMENTS; i++) {
    *meta = (struct meta){0};
    struct statx status;
    error = status_at(reader->resolver.parent, reader->resolver.name, &status);
    if (error != 0) return fail(meta, error);
    enum read_outcome outcome =
        S_ISREG(status.stx_mode) ? read_regular(reader, &status, meta) : read_other(reader, &status, meta);
    if (outcome != READ_REPLACED) return outcome;
  }
  return fail(meta, EAGAIN);
}

bool reader_init(struct reader *reader, int root, uint64_t max_content, uint32_t retries) {
  *reader = (struct reader){
      .max_content = max_content, .retries = retries, .wait_left_ns = wait_budget_ns, .euid = geteuid()};
  if (!xattr_scratch_init(&reader->scratch)) return false;
  resolver_init(&reader->resolver, root);
  return true;
}

void reader_free(struct reader *reader) {
  resolver_close(&reader->resolver);
  xattr_scratch_free(&reader->scratch);
}
