/* By the tree of trees, in which each subvolume names the directory that it is in. See subvolume-place.h. */
#define _GNU_SOURCE
#include "subvolume-place.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "tracee.h"

/* A path within a filesystem, put together from its end. */
struct inside {
  size_t start;
  char path[PATH_ROOM];
};

/* A directory: its inode, and the tree that this is of. */
struct spot_in_tree {
  uint64_t tree, inode;
};

static bool put_before(struct inside *inside, const char *text, size_t length) {
  if (length > inside->start) return false;
  inside->start -= length;
  memcpy(inside->path + inside->start, text, length);
  return true;
}

/* Where the subvolume is, and before `inside` its name. */
static bool go_up(int fd, uint64_t number, struct spot_in_tree *above, struct inside *inside) {
  struct btrfs_ioctl_search_args search = {.key = {
      .tree_id = BTRFS_ROOT_TREE_OBJECTID, .min_objectid = number, .max_objectid = number,
      .min_type = BTRFS_ROOT_BACKREF_KEY, .max_type = BTRFS_ROOT_BACKREF_KEY,
      .max_offset = UINT64_MAX, .max_transid = UINT64_MAX, .nr_items = 1}};
  struct btrfs_ioctl_search_header header;
  struct btrfs_root_ref reference;
  if (ioctl(fd, BTRFS_IOC_TREE_SEARCH, &search) != 0 || search.key.nr_items == 0) return false;
  memcpy(&header, search.buf, sizeof header);
  memcpy(&reference, search.buf + sizeof header, sizeof reference);
  if (sizeof reference + reference.name_len > header.len) return false;
  *above = (struct spot_in_tree){.tree = header.offset, .inode = reference.dirid};
  const char *name = search.buf + sizeof header + sizeof reference;
  return put_before(inside, "/", 1) && put_before(inside, name, reference.name_len);
}

/* The whole path, with a slash behind each name; '' for the top. Only root is told. */
static bool name_inside(int fd, struct spot_in_tree spot, struct inside *inside) {
  inside->start = sizeof inside->path - 1;
  inside->path[inside->start] = 0;
  for (;;) {
    struct btrfs_ioctl_ino_lookup_args lookup = {.treeid = spot.tree, .objectid = spot.inode};
    if (ioctl(fd, BTRFS_IOC_INO_LOOKUP, &lookup) != 0) return false;
    if (!put_before(inside, lookup.name, strlen(lookup.name))) return false;
    if (spot.tree == BTRFS_FS_TREE_OBJECTID) return true;
    if (!go_up(fd, spot.tree, &spot, inside)) return false;
  }
}

static bool is_on_btrfs(int fd) {
  struct statfs filesystem;
  return fstatfs(fd, &filesystem) == 0 && filesystem.f_type == BTRFS_SUPER_MAGIC;
}

static bool is_same_filesystem(int fd, int theirs) {
  struct btrfs_ioctl_fs_info_args here = {0}, there = {0};
  /* What cannot be asked may be the same. */
  if (ioctl(fd, BTRFS_IOC_FS_INFO, &here) != 0 || ioctl(theirs, BTRFS_IOC_FS_INFO, &there) != 0) return true;
  return memcmp(here.fsid, there.fsid, sizeof here.fsid) == 0;
}

static bool is_near(int fd, uint64_t number) {
  static struct inside whole, part;
  struct stat stat;
  struct btrfs_ioctl_ino_lookup_args own = {.treeid = 0, .objectid = BTRFS_FIRST_FREE_OBJECTID};
  if (fstat(fd, &stat) != 0 || ioctl(fd, BTRFS_IOC_INO_LOOKUP, &own) != 0) return true;
  struct spot_in_tree directory = {.tree = own.treeid, .inode = stat.st_ino};
  struct spot_in_tree subvolume = {.tree = number, .inode = BTRFS_FIRST_FREE_OBJECTID};
  if (!name_inside(fd, directory, &whole) || !name_inside(fd, subvolume, &part)) return true;
  const char *one = whole.path + whole.start, *other = part.path + part.start;
  size_t shorter = strlen(one) < strlen(other) ? strlen(one) : strlen(other);
  return memcmp(one, other, shorter) == 0;
}

bool subvolume_takes(pid_t tid, int theirs, uint64_t number, const char *directory) {
  char link[64];
  int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return false;
  snprintf(link, sizeof link, "/proc/%d/fd/%d", tid, theirs);
  int place = open(link, O_PATH | O_CLOEXEC);
  bool is_of_btrfs = is_on_btrfs(fd) && place >= 0 && is_on_btrfs(place);
  if (place >= 0) close(place);
  /* It may be a FIFO. */
  int same = is_of_btrfs ? open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
  bool result = is_of_btrfs && is_same_filesystem(fd, same) && is_near(fd, number);
  if (same >= 0) close(same);
  close(fd);
  return result;
}
