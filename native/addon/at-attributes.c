/* Modes, owners, times and extended attributes of one path beneath a root descriptor, never through a symlink. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "addon.h"
#include "at-place.h"
#include "status.h"
#include "xattr.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

/* Before Linux 6.6: through an O_PATH descriptor, which pins the object between the check and the change. */
static int chmod_through_proc(const struct place *place, uint32_t mode) {
  int fd = open_resolved(&place->resolver, O_PATH, 0);
  if (fd < 0) return errno;
  struct stat status;
  int error = error_of(fstat(fd, &status));
  if (error == 0 && S_ISLNK(status.st_mode)) error = EOPNOTSUPP;
  if (error == 0) {
    char proc[40];
    snprintf(proc, sizeof proc, "/proc/self/fd/%d", fd);
    error = error_of(chmod(proc, mode));
  }
  close(fd);
  return error;
}

static int chmod_place(const struct place *place, uint32_t mode) {
#ifndef SAVEPOINT_FORCE_FALLBACK
  int error = error_of((int)syscall(SYS_fchmodat2, place->fd, place->name, mode, AT_SYMLINK_NOFOLLOW));
  // EPERM may come from a sandbox that does not know the call; if it is meant, the second way gives it too.
  if (error != ENOSYS && error != EPERM) return error;
#endif
  return chmod_through_proc(place, mode);
}

napi_value addon_chmod_at(napi_env env, napi_callback_info info) {
  struct place place;
  uint32_t mode;
  if (!place_begin_with_mode(env, info, &place, &mode)) return NULL;
  return place_finish_call(env, &place, chmod_place(&place, mode & 07777), "fchmodat2");
}

napi_value addon_chown_at(napi_env env, napi_callback_info info) {
  napi_value arguments[4];
  struct place place;
  uint32_t uid, gid;
  if (!get_arguments(env, info, 4, arguments) || !get_u32(env, arguments[2], &uid) ||
      !get_u32(env, arguments[3], &gid) || !place_begin(env, arguments[0], arguments[1], &place)) {
    return NULL;
  }
  return place_finish_call(env, &place, error_of(fchownat(place.fd, place.name, uid, gid, AT_SYMLINK_NOFOLLOW)), "fchownat");
}

napi_value addon_utimes_at(napi_env env, napi_callback_info info) {
  napi_value arguments[3];
  struct place place;
  int64_t mtime_ns;
  if (!get_arguments(env, info, 3, arguments) || !get_i64(env, arguments[2], &mtime_ns) ||
      !place_begin(env, arguments[0], arguments[1], &place)) {
    return NULL;
  }
  struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, to_timespec(mtime_ns)};
  return place_finish_call(env, &place, error_of(utimensat(place.fd, place.name, times, AT_SYMLINK_NOFOLLOW)), "utimensat");
}

/* A place whose object is opened for its extended attributes. After begin_xattrs() has succeeded, finish_xattrs() releases it. */
struct xattr_place {
  struct place place;
  struct xattr_target target;
  struct xattr_scratch scratch;
};

static bool begin_xattrs(napi_env env, napi_value root_value, napi_value path_value, struct xattr_place *xattrs) {
  if (!place_begin(env, root_value, path_value, &xattrs->place)) return false;
  int fd = open_resolved(&xattrs->place.resolver, O_PATH, 0);
  int error = error_of(fd);
  if (error == 0 && !xattr_scratch_init(&xattrs->scratch)) error = ENOMEM;
  if (error != 0) {
    if (fd >= 0) close(fd);
    place_finish_call(env, &xattrs->place, error, "openat");
    return false;
  }
  xattrs->target = xattr_path_only(fd);
  return true;
}

/* Answers `result`, or throws when `error` is not 0. */
static napi_value finish_xattrs(napi_env env, struct xattr_place *xattrs, napi_value result, int error, const char *syscall) {
  close(xattrs->target.fd);
  xattr_scratch_free(&xattrs->scratch);
  return place_finish_call(env, &xattrs->place, error, syscall) == NULL ? NULL : result;
}

napi_value addon_get_xattrs(napi_env env, napi_callback_info info) {
  napi_value arguments[2];
  struct xattr_place xattrs;
  if (!get_arguments(env, info, 2, arguments) || !begin_xattrs(env, arguments[0], arguments[1], &xattrs)) return NULL;
  uint8_t *encoded = NULL;
  size_t room = 0, needed;
  int error;
  // The set may grow between two looks at it; each round makes room for what the last one needed.
  while ((error = xattr_encode(&xattrs.target, &xattrs.scratch, encoded, room, &needed)) == 0 && needed > room) {
    free(encoded);
    room = needed;
    encoded = malloc(room);
    if (encoded == NULL) {
      error = ENOMEM;
      break;
    }
  }
  napi_value result = error == 0 ? make_buffer_copy(env, encoded, needed) : NULL;
  free(encoded);
  return finish_xattrs(env, &xattrs, result, error, "getxattr");
}

napi_value addon_set_xattrs(napi_env env, napi_callback_info info) {
  napi_value arguments[3];
  struct bytes_view encoded;
  struct xattr_place xattrs;
  if (!get_arguments(env, info, 3, arguments) || !get_buffer(env, arguments[2], &encoded) ||
      !begin_xattrs(env, arguments[0], arguments[1], &xattrs)) {
    return NULL;
  }
  int refused = 0;
  int error = xattr_apply(&xattrs.target, &xattrs.scratch, encoded.data, encoded.length, &refused);
  return finish_xattrs(env, &xattrs, make_number(env, refused), error, "setxattr");
}
