/* What the kernel tells of snapshots of btrfs: what differs between two, and which one it is. No process, no pipe, nobody to read along. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "addon.h"
#include "napi-util.h"

/* A file in memory that cannot grow beyond `limit`: a longer stream fails with EPERM instead of filling the memory. */
static int make_room(uint64_t limit) {
  int fd = memfd_create("savepoint-send", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return -1;
  if (ftruncate(fd, (off_t)limit) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_GROW) == 0) return fd;
  int error = errno;
  close(fd);
  errno = error;
  return -1;
}

static int send_into(int room, int before, int after) {
  struct btrfs_ioctl_ino_lookup_args parent = {.objectid = BTRFS_FIRST_FREE_OBJECTID};
  if (ioctl(before, BTRFS_IOC_INO_LOOKUP, &parent) != 0) return errno;
  struct btrfs_ioctl_send_args wanted = {
      .send_fd = room, .parent_root = parent.treeid, .flags = BTRFS_SEND_FLAG_NO_FILE_DATA};
  return ioctl(after, BTRFS_IOC_SEND, &wanted) == 0 ? 0 : errno;
}

/* What was written lies at the beginning, in whole pages: the rest is a hole. */
static int read_room(int room, char **bytes, size_t *length) {
  off_t end = lseek(room, 0, SEEK_HOLE);
  if (end < 0) return errno;
  *bytes = malloc(end > 0 ? (size_t)end : 1);
  if (*bytes == NULL) return ENOMEM;
  while (*length < (size_t)end) {
    ssize_t count = pread(room, *bytes + *length, (size_t)end - *length, (off_t)*length);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count < 0 ? errno : EIO;
    *length += (size_t)count;
  }
  return 0;
}

napi_value addon_btrfs_differences(napi_env env, napi_callback_info info) {
  napi_value arguments[3];
  int before, after;
  uint64_t limit;
  if (!get_arguments(env, info, 3, arguments) || !get_int(env, arguments[0], &before) ||
      !get_int(env, arguments[1], &after) || !get_size(env, arguments[2], &limit)) {
    return NULL;
  }
  char *bytes = NULL;
  size_t length = 0;
  int room = make_room(limit);
  int error = room < 0 ? errno : send_into(room, before, after);
  if (error == 0) error = read_room(room, &bytes, &length);
  if (room >= 0) close(room);
  if (error == 0) return make_buffer_owning(env, bytes, length);
  free(bytes);
  throw_errno(env, error, "send", NULL, 0);
  return NULL;
}

/*
 * Its id, the id that it had where it was received from, and two bytes: 1 when something was changed since it was made, as far as
 * that is written back; 1 when it can be written.
 */
napi_value addon_subvolume_identity(napi_env env, napi_callback_info info) {
  napi_value arguments[1];
  int subvolume;
  if (!get_arguments(env, info, 1, arguments) || !get_int(env, arguments[0], &subvolume)) return NULL;
  struct btrfs_ioctl_get_subvol_info_args told = {0};
  // Some kernels answer 1 for one that is there.
  if (ioctl(subvolume, BTRFS_IOC_GET_SUBVOL_INFO, &told) < 0) {
    throw_errno(env, errno, "subvol_info", NULL, 0);
    return NULL;
  }
  uint8_t bytes[2 * BTRFS_UUID_SIZE + 2];
  memcpy(bytes, told.uuid, BTRFS_UUID_SIZE);
  memcpy(bytes + BTRFS_UUID_SIZE, told.received_uuid, BTRFS_UUID_SIZE);
  // Not the generation: a balance, and a snapshot that somebody makes of it, raise that, too.
  bytes[2 * BTRFS_UUID_SIZE] = told.ctransid > told.otransid;
  bytes[2 * BTRFS_UUID_SIZE + 1] = (told.flags & BTRFS_ROOT_SUBVOL_RDONLY) == 0;
  return make_buffer_copy(env, bytes, sizeof bytes);
}
