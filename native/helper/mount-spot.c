/* See mount-spot.h. */
#define _GNU_SOURCE
#include "mount-spot.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef STATX_MNT_ID
#define STATX_MNT_ID 0x1000
#endif
#ifndef STATX_MNT_ID_UNIQUE
#define STATX_MNT_ID_UNIQUE 0x4000
#endif

enum { JOINED_ROOM = PATH_ROOM + 64, MAX_DEPTH = 4096 };

static bool look_at(int fd, struct spot *spot) {
  struct statx found;
  if (statx(fd, "", AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_TYPE | STATX_MNT_ID, &found) != 0) return false;
  if ((found.stx_mask & STATX_MNT_ID) == 0) return false;
  *spot = (struct spot){.mount = found.stx_mnt_id,
                        .inode = found.stx_ino,
                        .major = found.stx_dev_major,
                        .minor = found.stx_dev_minor,
                        .is_directory = S_ISDIR(found.stx_mode)};
  return true;
}

static bool is_same_file(const struct spot *a, const struct spot *b) {
  return a->inode == b->inode && a->major == b->major && a->minor == b->minor;
}

/* How many directories lie between the root of its mount and this one; -1 when that cannot be told. */
static int depth_in_mount(int directory, const struct spot *start) {
  struct spot spot = *start;
  int fd = dup(directory), depth = -1;
  for (int i = 0; fd >= 0 && i < MAX_DEPTH; i++) {
    struct spot above;
    int next = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    close(fd);
    fd = next;
    if (fd < 0 || !look_at(fd, &above)) break;
    /* The root of all is its own parent. */
    if (above.mount != start->mount || is_same_file(&above, &spot)) {
      depth = i;
      break;
    }
    spot = above;
  }
  if (fd >= 0) close(fd);
  return depth;
}

/* The nearest that exists, of `path` in the view of a thread: itself, or a directory above. `length`: how much of it that is. */
static int open_nearest(pid_t tid, const char *path, size_t *length) {
  char joined[JOINED_ROOM];
  size_t before = (size_t)snprintf(joined, sizeof joined, "/proc/%d/root", tid);
  memcpy(joined + before, path, *length + 1);
  for (;;) {
    joined[before + *length] = 0;
    int fd = open(*length == 0 ? strcat(joined, "/") : joined, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 || *length == 0 || errno != ENOENT) return fd;
    while (path[--*length] != '/');
  }
}

/* Where in a path its last `count` parts begin, with the slash before them. */
static size_t tail_of(const char *path, size_t length, int count) {
  while (count-- > 0 && length > 0) while (path[--length] != '/');
  return length;
}

static uint64_t unique_mount(int fd) {
  struct statx found;
  if (statx(fd, "", AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, STATX_MNT_ID_UNIQUE, &found) != 0) return 0;
  return (found.stx_mask & STATX_MNT_ID_UNIQUE) == 0 ? 0 : found.stx_mnt_id;
}

bool mount_spot_find(pid_t tid, const struct place *place, struct found *found) {
  struct spot above;
  size_t length = place->length == 1 ? 0 : place->length;
  int fd = open_nearest(tid, place->path, &length), depth = -1;
  if (fd < 0 || !look_at(fd, &found->spot)) {
    if (fd >= 0) close(fd);
    return false;
  }
  found->length = length;
  if (found->spot.is_directory) depth = depth_in_mount(fd, &found->spot);
  else {
    size_t parent_length = tail_of(place->path, length, 1);
    int parent = open_nearest(tid, place->path, &parent_length);
    /* A file may be a mount of its own. */
    if (parent >= 0 && look_at(parent, &above)) {
      bool is_alone = above.mount != found->spot.mount;
      depth = is_alone ? 0 : depth_in_mount(parent, &above);
      if (depth >= 0 && !is_alone) depth++;
    }
    if (parent >= 0) close(parent);
  }
  found->unique = unique_mount(fd);
  close(fd);
  if (depth < 0) return false;
  found->start = tail_of(place->path, length, depth);
  return true;
}

bool mount_spot_is_ours(const struct place *place, size_t missing, const struct spot *wanted) {
  char path[PATH_ROOM];
  struct spot spot;
  size_t length = place->length - missing;
  memcpy(path, place->path, length);
  path[length] = 0;
  int fd = open(length == 0 ? "/" : path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  bool is_same = fd >= 0 && look_at(fd, &spot) && is_same_file(&spot, wanted);
  if (fd >= 0) close(fd);
  return is_same;
}
