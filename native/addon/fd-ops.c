/* Calls on an open descriptor, and the one on this process. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "addon.h"
#include "napi-util.h"
#include "status.h"

/* Of JavaScript. */
static const double MAX_SAFE_INTEGER = 9007199254740991.0;

static bool get_fd(napi_env env, napi_callback_info info, int *fd) {
  napi_value arguments[1];
  return get_arguments(env, info, 1, arguments) && get_int(env, arguments[0], fd);
}

static napi_value finish_call(napi_env env, int error, const char *syscall) {
  if (error == 0) return make_undefined(env);
  throw_errno(env, error, syscall, NULL, 0);
  return NULL;
}

napi_value addon_close_fd(napi_env env, napi_callback_info info) {
  int fd;
  if (!get_fd(env, info, &fd)) return NULL;
  // Linux has closed the descriptor also when it says EINTR.
  return finish_call(env, close(fd) == 0 || errno == EINTR ? 0 : errno, "close");
}

napi_value addon_stat_fd(napi_env env, napi_callback_info info) {
  int fd;
  if (!get_fd(env, info, &fd)) return NULL;
  struct statx status;
  int error = fd < 0 ? EBADF : status_of_fd(fd, &status); // AT_FDCWD is no descriptor of the caller's
  return error == 0 ? make_stat(env, &status) : finish_call(env, error, "statx");
}

napi_value addon_flock_fd(napi_env env, napi_callback_info info) {
  napi_value arguments[2], result;
  int fd, operation, failed;
  if (!get_arguments(env, info, 2, arguments) || !get_int(env, arguments[0], &fd) ||
      !get_int(env, arguments[1], &operation)) {
    return NULL;
  }
  do failed = flock(fd, operation);
  while (failed != 0 && errno == EINTR);
  if (failed != 0 && errno != EWOULDBLOCK) return finish_call(env, errno, "flock");
  return napi_get_boolean(env, failed == 0, &result) == napi_ok ? result : NULL;
}

napi_value addon_syncfs_fd(napi_env env, napi_callback_info info) {
  int fd;
  if (!get_fd(env, info, &fd)) return NULL;
  int error = syncfs(fd) == 0 ? 0 : errno;
  if (error == EBADF && fd >= 0) {
    // An O_PATH root descriptor: syncfs wants one that is open for real.
    int real = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (real >= 0) {
      error = syncfs(real) == 0 ? 0 : errno;
      close(real);
    } else if (errno == EACCES) {
      // It has been shut to us since: then everything.
      sync();
      error = 0;
    }
  }
  return finish_call(env, error, "syncfs");
}

/* Only a hint: what fails here fails again, and is reported, when the file is synced. */
napi_value addon_start_writeback(napi_env env, napi_callback_info info) {
  int fd;
  if (!get_fd(env, info, &fd)) return NULL;
  (void)sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
  return finish_call(env, 0, "sync_file_range");
}

/* EXT4_TOPDIR_FL, `chattr +T`. Other filesystems refuse it, which is fine: it is only a hint. */
napi_value addon_spread_subdirs(napi_env env, napi_callback_info info) {
  int fd;
  if (!get_fd(env, info, &fd)) return NULL;
  int flags = 0;
  if (ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0) {
    flags |= FS_TOPDIR_FL;
    (void)ioctl(fd, FS_IOC_SETFLAGS, &flags);
  }
  return finish_call(env, 0, "ioctl");
}

napi_value addon_clone_fd(napi_env env, napi_callback_info info) {
  napi_value arguments[2];
  int source, destination;
  if (!get_arguments(env, info, 2, arguments) || !get_int(env, arguments[0], &source) ||
      !get_int(env, arguments[1], &destination)) {
    return NULL;
  }
  int error = ioctl(destination, FICLONE, source) == 0 ? 0 : errno;
  // Filesystems that do not know the ioctl say one of these instead.
  if (error == ENOTTY || error == ENOSYS) error = EOPNOTSUPP;
  return finish_call(env, error, "ficlone");
}

/* (subvolume, directory, name): as `btrfs subvolume snapshot -r`, without the start of a process. */
napi_value addon_snapshot_subvolume(napi_env env, napi_callback_info info) {
  napi_value arguments[3];
  int subvolume, directory;
  struct bytes_view name;
  if (!get_arguments(env, info, 3, arguments) || !get_int(env, arguments[0], &subvolume) ||
      !get_int(env, arguments[1], &directory) || !get_buffer(env, arguments[2], &name)) {
    return NULL;
  }
  struct btrfs_ioctl_vol_args_v2 wanted = {.fd = subvolume, .flags = BTRFS_SUBVOL_RDONLY};
  if (name.length == 0 || name.length >= sizeof wanted.name) return finish_call(env, EINVAL, "snapshot");
  memcpy(wanted.name, name.data, name.length);
  return finish_call(env, ioctl(directory, BTRFS_IOC_SNAP_CREATE_V2, &wanted) == 0 ? 0 : errno, "snapshot");
}

struct segments {
  double *numbers;
  size_t count, room;
};

static bool append_segment(struct segments *segments, off_t start, off_t end) {
  if (segments->count + 2 > segments->room) {
    size_t room = segments->room * 2 + 64;
    double *grown = realloc(segments->numbers, room * sizeof *grown);
    if (grown == NULL) return false;
    segments->numbers = grown;
    segments->room = room;
  }
  segments->numbers[segments->count++] = (double)start;
  segments->numbers[segments->count++] = (double)(end - start);
  return true;
}

static int find_segments(int fd, off_t size, struct segments *segments) {
  for (off_t at = 0; at < size;) {
    off_t data = lseek(fd, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) return 0; // a hole up to the end
    off_t hole = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);
    if (hole < 0 && (errno == EINVAL || errno == ENOTSUP) && at == 0) {
      return append_segment(segments, 0, size) ? 0 : ENOMEM; // no holes on this filesystem
    }
    if (hole < 0 && errno == ENXIO) return 0; // truncated meanwhile
    if (hole < 0) return errno;
    if (data >= size) return 0;
    if (!append_segment(segments, data, hole < size ? hole : size)) return ENOMEM;
    at = hole > data ? hole : data + 1;
  }
  return 0;
}

napi_value addon_data_segments(napi_env env, napi_callback_info info) {
  napi_value arguments[2], memory, result = NULL;
  int fd;
  uint64_t size;
  if (!get_arguments(env, info, 2, arguments) || !get_int(env, arguments[0], &fd) ||
      !get_size(env, arguments[1], &size)) {
    return NULL;
  }
  struct segments segments = {0};
  off_t position = lseek(fd, 0, SEEK_CUR);
  int error = position < 0 ? errno : find_segments(fd, (off_t)size, &segments);
  if (position >= 0) lseek(fd, position, SEEK_SET);
  void *copy;
  size_t bytes = segments.count * sizeof *segments.numbers;
  if (error == 0 && napi_create_arraybuffer(env, bytes, &copy, &memory) == napi_ok) {
    if (bytes > 0) memcpy(copy, segments.numbers, bytes);
    if (napi_create_typedarray(env, napi_float64_array, segments.count, memory, 0, &result) != napi_ok) result = NULL;
  }
  free(segments.numbers);
  return error == 0 ? result : finish_call(env, error, "lseek");
}

enum { EXTENTS_AT_ONCE = 128 };

/* 1, 0, or -1 with errno: whether a part of the file lies in blocks that something else has, too. */
static int shares_blocks(int fd) {
  struct {
    struct fiemap head;
    struct fiemap_extent extents[EXTENTS_AT_ONCE];
  } map;
  for (uint64_t at = 0;;) {
    memset(&map.head, 0, sizeof map.head);
    map.head.fm_start = at;
    map.head.fm_length = FIEMAP_MAX_OFFSET - at;
    map.head.fm_extent_count = EXTENTS_AT_ONCE;
    if (ioctl(fd, FS_IOC_FIEMAP, &map.head) != 0) return -1;
    if (map.head.fm_mapped_extents == 0) return 0;
    for (uint32_t i = 0; i < map.head.fm_mapped_extents; i++) {
      const struct fiemap_extent *extent = &map.extents[i];
      if (extent->fe_flags & FIEMAP_EXTENT_SHARED) return 1;
      if (extent->fe_flags & FIEMAP_EXTENT_LAST) return 0;
      at = extent->fe_logical + extent->fe_length;
    }
  }
}

napi_value addon_shares_blocks(napi_env env, napi_callback_info info) {
  int fd;
  if (!get_fd(env, info, &fd)) return NULL;
  int shared = shares_blocks(fd);
  return shared < 0 ? finish_call(env, errno, "fiemap") : make_number(env, shared);
}

napi_value addon_statfs_fd(napi_env env, napi_callback_info info) {
  int fd;
  if (!get_fd(env, info, &fd)) return NULL;
  struct statfs status;
  if (fstatfs(fd, &status) != 0) return finish_call(env, errno, "fstatfs");
  double block = (double)(status.f_frsize != 0 ? status.f_frsize : status.f_bsize);
  // As df counts: the blocks that are reserved for root do not exist for others.
  double used = (double)status.f_blocks - (double)status.f_bfree;
  // One that says no size (ramfs, some of FUSE) is not full: it does not know.
  double room = status.f_blocks == 0 ? MAX_SAFE_INTEGER : (double)status.f_bavail * block;
  napi_value result;
  if (napi_create_object(env, &result) != napi_ok ||
      !set_number(env, result, "free", room) ||
      !set_number(env, result, "total", (used + (double)status.f_bavail) * block) ||
      !set_number(env, result, "type", (double)(uint32_t)status.f_type)) {
    return NULL;
  }
  return result;
}

#ifndef FS_IOC_GETFSUUID
struct fsuuid2 {
  uint8_t len;
  uint8_t uuid[16];
};
#define FS_IOC_GETFSUUID _IOR(0x15, 0, struct fsuuid2)
#endif

/* Since Linux 6.8; otherwise 0. */
napi_value addon_unique_mount(napi_env env, napi_callback_info info) {
  int fd;
  napi_value result;
  if (!get_fd(env, info, &fd)) return NULL;
  struct statx status = {0};
  bool is_told = statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID_UNIQUE, &status) == 0 &&
                 (status.stx_mask & STATX_MNT_ID_UNIQUE) != 0;
  return napi_create_bigint_uint64(env, is_told ? status.stx_mnt_id : 0, &result) == napi_ok ? result : NULL;
}

/* Since Linux 6.9, and where the filesystem has one; otherwise there are no bytes. btrfs tells it in its own way, for longer. */
napi_value addon_filesystem_id(napi_env env, napi_callback_info info) {
  int fd;
  if (!get_fd(env, info, &fd)) return NULL;
  struct fsuuid2 told = {0};
  bool is_told = ioctl(fd, FS_IOC_GETFSUUID, &told) == 0 && told.len <= sizeof told.uuid;
  if (is_told) return make_buffer_copy(env, told.uuid, told.len);
  struct btrfs_ioctl_fs_info_args known = {0};
  is_told = ioctl(fd, BTRFS_IOC_FS_INFO, &known) == 0;
  return make_buffer_copy(env, known.fsid, is_told ? sizeof known.fsid : 0);
}

napi_value addon_raw_argv(napi_env env, napi_callback_info info) {
  (void)info;
  int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return finish_call(env, errno, "open");
  uint8_t *bytes = NULL;
  size_t length = 0, room = 0;
  int error = 0;
  for (;;) {
    if (length == room) {
      room = room * 2 + 4096;
      uint8_t *grown = realloc(bytes, room);
      if (grown == NULL) {
        error = ENOMEM;
        break;
      }
      bytes = grown;
    }
    ssize_t got = read(fd, bytes + length, room - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) error = errno;
    if (got <= 0) break;
    length += (size_t)got;
  }
  close(fd);
  // Each argument ends in NUL; between them it separates, so the last one goes.
  if (length > 0 && bytes[length - 1] == 0) length--;
  napi_value result = error == 0 ? make_buffer_copy(env, bytes, length) : finish_call(env, error, "read");
  free(bytes);
  return result;
}
