/* A directory of files and one log. See spool.h. */
#define _GNU_SOURCE
#include "spool.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "times.h"

enum { PRIVATE = 0600, MAX_NAMES = 4096, MAX_VALUE = 64 * 1024 };
/* Larger ones are not copied while a program waits. */
static const off_t max_copy = 256 * 1024 * 1024;
enum how { COPY, CLONE };

/* Where the target is, or was until it was moved; empty: there is no spool. */
static char target_path[PATH_ROOM];
static size_t target_length;
/* What was the target until somebody was about to move it, and where that is; `fd` -1: none. */
static struct {
  int fd;
  char path[PATH_ROOM];
  size_t length;
} former[SPOOL_FORMER];
static size_t former_count;
static int spool_fd = -1, log_fd = -1;
static uint32_t last_number;
static struct times linked; /* by inode: the number that it has here */

void spool_open(const char *directory) {
  if (directory == NULL) return;
  spool_fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
  log_fd = spool_fd < 0 ? -1 : openat(spool_fd, "log", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, PRIVATE);
  int target = log_fd < 0 ? -1 : openat(spool_fd, "target", O_RDONLY | O_CLOEXEC);
  if (target < 0) return;
  ssize_t length = read(target, target_path, sizeof target_path - 1);
  close(target);
  if (length > 0) target_length = (size_t)length;
}

const char *spool_target(void) { return target_length == 0 ? NULL : target_path; }

/* Where it has been moved to by now; false: it is gone. */
static bool find_former(size_t which) {
  static const char gone[] = " (deleted)";
  char link[32];
  if (former[which].fd < 0) return false;
  snprintf(link, sizeof link, "/proc/self/fd/%d", former[which].fd);
  ssize_t length = readlink(link, former[which].path, sizeof former[which].path - 1);
  if (length <= 0 || former[which].path[0] != '/') return false;
  former[which].path[length] = 0;
  former[which].length = (size_t)length;
  size_t end = sizeof gone - 1;
  return (size_t)length <= end || strcmp(former[which].path + length - end, gone) != 0;
}

/* Whether the place is the directory, lies in it, or has it in it. */
static bool is_near(const struct place *place, const char *path, size_t length) {
  size_t shorter = place->length < length ? place->length : length;
  if (length == 0 || memcmp(place->path, path, shorter) != 0) return false;
  if (place->length == length || shorter == 1) return true;
  return place->length > shorter ? place->path[shorter] == '/' : path[shorter] == '/';
}

static bool is_in(const struct place *place, const char *path, size_t length) {
  bool is_longer = length > 0 && place->length > length + 1;
  return is_longer && memcmp(place->path, path, length) == 0 && place->path[length] == '/';
}

bool spool_concerns(const struct place *place) {
  for (size_t i = 0; i < former_count; i++)
    if (find_former(i) && is_near(place, former[i].path, former[i].length)) return true;
  return is_near(place, target_path, target_length);
}

unsigned spool_which(const struct place *place) {
  if (is_in(place, target_path, target_length)) return SPOOL_PRESENT;
  for (size_t i = 0; i < former_count; i++)
    if (find_former(i) && is_in(place, former[i].path, former[i].length)) return (unsigned)i;
  return SPOOL_NONE;
}

const char *spool_inside(const struct place *place) {
  unsigned which = spool_which(place);
  if (which == SPOOL_NONE) return NULL;
  return place->path + (which == SPOOL_PRESENT ? target_length : former[which].length);
}

bool spool_moves(const struct place *place) {
  return place->known && is_near(place, target_path, target_length) && !is_in(place, target_path, target_length);
}

static bool is_followed(const struct stat *directory) {
  struct stat stat;
  for (size_t i = 0; i < former_count; i++)
    if (former[i].fd >= 0 && fstat(former[i].fd, &stat) == 0 && stat.st_ino == directory->st_ino && stat.st_dev == directory->st_dev) return true;
  return false;
}

unsigned spool_follow(void) {
  struct stat stat;
  int fd = open(target_path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &stat) != 0 || is_followed(&stat)) {
    if (fd >= 0) close(fd);
    return SPOOL_NONE;
  }
  size_t which = 0;
  while (which < former_count && find_former(which)) which++;
  /* Of too many the last one is left. */
  if (which == SPOOL_FORMER) which--;
  if (which == former_count) former_count++;
  else close(former[which].fd);
  former[which].fd = fd;
  return (unsigned)which;
}

const char *spool_path(const struct place *place, size_t *length) {
  static char path[2 * PATH_ROOM];
  const char *inside = spool_inside(place);
  if (inside == NULL) return NULL;
  size_t rest = strlen(inside);
  memcpy(path, target_path, target_length);
  memcpy(path + target_length, inside, rest + 1);
  *length = target_length + rest;
  return path;
}

static const char *name_of(uint32_t number) {
  static char name[16]; /* one thread */
  snprintf(name, sizeof name, "%u", number);
  return name;
}

void spool_remove(uint32_t number) {
  char name[16];
  snprintf(name, sizeof name, "%u", number);
  unlinkat(spool_fd, name, 0);
}

bool spool_log(struct frame *frame) {
  frame_finish(frame);
  return spool_log_frames(frame->bytes, frame->length);
}

bool spool_log_frames(const uint8_t *bytes, size_t length) {
  ssize_t written = log_fd < 0 ? -1 : write(log_fd, bytes, length);
  if (written == (ssize_t)length) return true;
  /* Nothing behind a part of a frame could be read. */
  if (written > 0 && ftruncate(log_fd, lseek(log_fd, 0, SEEK_END) - written) != 0) log_fd = -1;
  return false;
}

uint64_t spool_free_bytes(void) {
  struct statvfs disk;
  /* One that says no size (ramfs, some of FUSE) does not know. */
  bool is_known = fstatvfs(spool_fd, &disk) == 0 && disk.f_blocks != 0;
  return is_known ? (uint64_t)disk.f_bavail * disk.f_frsize : UINT64_MAX;
}

/* The number that a file has here, as long as nobody has taken it up; 0: it has none. */
static uint32_t number_of(const struct place *place) {
  uint64_t inode[] = {place->stat.st_dev, place->stat.st_ino};
  struct stat stat;
  uint32_t number = (uint32_t)times_at(&linked, inode, sizeof inode);
  bool is_here = number != 0 && fstatat(spool_fd, name_of(number), &stat, AT_SYMLINK_NOFOLLOW) == 0;
  return is_here && stat.st_ino == place->stat.st_ino && stat.st_dev == place->stat.st_dev ? number : 0;
}

uint32_t spool_link(const struct place *place) {
  uint64_t inode[] = {place->stat.st_dev, place->stat.st_ino};
  uint32_t number = number_of(place);
  if (number != 0) return number;
  if (linkat(AT_FDCWD, place->path, spool_fd, name_of(++last_number), 0) != 0) return 0;
  times_set(&linked, inode, sizeof inode, last_number);
  return last_number;
}

bool spool_discount(struct place *place) {
  bool may_be = place->known && place->exists && !S_ISDIR(place->stat.st_mode) && place->stat.st_nlink > 1;
  if (!may_be || number_of(place) == 0) return false;
  place->stat.st_nlink--;
  return true;
}

static bool copy_bytes(int from, int to, enum how how) {
  if (ioctl(to, FICLONE, from) == 0) return true;
  if (how == CLONE) return false;
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

/* As far as it may be done. */
static void copy_xattrs(int from, int to) {
  static char names[MAX_NAMES], value[MAX_VALUE];
  ssize_t length = flistxattr(from, names, sizeof names);
  for (const char *name = names; length > 0 && name < names + length; name += strlen(name) + 1) {
    ssize_t size = fgetxattr(from, name, value, sizeof value);
    if (size >= 0) fsetxattr(to, name, value, (size_t)size, 0);
  }
}

/*
 * What its own user may not read (`chmod 200`) is opened for a moment: whoever is about to write it could do the same. Held, so that no
 * other file takes its place meanwhile.
 */
static int open_shut(const char *path) {
  int held = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC), from = -1;
  struct stat stat;
  char link[32];
  snprintf(link, sizeof link, "/proc/self/fd/%d", held);
  if (held >= 0 && fstat(held, &stat) == 0 && S_ISREG(stat.st_mode) && stat.st_uid == geteuid() && (stat.st_mode & S_IRUSR) == 0 &&
      chmod(link, (stat.st_mode & ALLPERMS) | S_IRUSR) == 0) {
    from = open(link, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    chmod(link, stat.st_mode & ALLPERMS);
  }
  if (held >= 0) close(held);
  return from;
}

static uint32_t copy_as(const struct place *place, enum how how) {
  if (spool_fd < 0) return 0;
  int from = open(place->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (from < 0 && errno == EACCES) from = open_shut(place->path);
  if (from < 0) return 0;
  struct stat stat;
  bool is_same = fstat(from, &stat) == 0 && stat.st_ino == place->stat.st_ino && S_ISREG(stat.st_mode);
  const char *name = name_of(++last_number);
  int to = is_same ? openat(spool_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, PRIVATE) : -1;
  bool is_copied = to >= 0 && copy_bytes(from, to, how);
  if (is_copied) copy_xattrs(from, to);
  if (to >= 0) {
    close(to);
    if (!is_copied) unlinkat(spool_fd, name, 0);
  }
  close(from);
  return is_copied ? last_number : 0;
}

uint32_t spool_copy_any(const struct place *place) { return copy_as(place, COPY); }

static uint32_t copy_symlink(const struct place *place) {
  static char target[PATH_ROOM];
  ssize_t length = readlink(place->path, target, sizeof target - 1);
  if (length <= 0) return 0;
  target[length] = 0;
  return symlinkat(target, spool_fd, name_of(++last_number)) == 0 ? last_number : 0;
}

void spool_detach(const struct place *place) {
  uint32_t number = number_of(place), copied = number == 0 ? 0 : spool_copy_any(place);
  char name[16];
  snprintf(name, sizeof name, "%u", copied);
  if (copied != 0) renameat(spool_fd, name, spool_fd, name_of(number));
}

uint32_t spool_copy(const struct place *place) { return spool_copy_up_to(place, max_copy); }

uint32_t spool_copy_up_to(const struct place *place, off_t size) {
  if (S_ISLNK(place->stat.st_mode)) return copy_symlink(place);
  return copy_as(place, place->stat.st_size > size ? CLONE : COPY);
}
