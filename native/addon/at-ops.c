/* The *at family: one call on one path beneath a root descriptor, never through a symlink. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "addon.h"
#include "napi-util.h"
#include "resolve.h"
#include "status.h"
#include "xattr.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

/* A path argument resolved beneath its root. After begin() has succeeded, exactly one finish() releases it. */
struct place {
  struct raw_path path;
  struct resolver resolver;
  int fd;           /* the parent */
  const char *name; /* the last component */
};

static bool begin(napi_env env, napi_value root_value, napi_value path_value, struct place *place) {
  int root;
  if (!get_int(env, root_value, &root) || !get_path(env, path_value, &place->path)) return false;
  resolver_init(&place->resolver, root);
  int error = resolve(&place->resolver, place->path.bytes, place->path.length);
  place->fd = place->resolver.parent;
  place->name = place->resolver.name;
  if (error == 0) return true;
  throw_errno(env, error, "openat2", place->path.bytes, place->path.length);
  resolver_close(&place->resolver);
  free_path(&place->path);
  return false;
}

static void finish(struct place *place) {
  resolver_close(&place->resolver);
  free_path(&place->path);
}

/* Releases the place and throws unless `error` is 0. */
static napi_value finish_call(napi_env env, struct place *place, int error, const char *syscall) {
  if (error != 0) throw_errno(env, error, syscall, place->path.bytes, place->path.length);
  finish(place);
  return error == 0 ? make_undefined(env) : NULL;
}

static int error_of(int result) {
  return result < 0 ? errno : 0;
}

/* The arguments of a call on (root, path, mode). */
static bool begin_with_mode(napi_env env, napi_callback_info info, struct place *place, uint32_t *mode) {
  napi_value arguments[3];
  return get_arguments(env, info, 3, arguments) && get_u32(env, arguments[2], mode) &&
         begin(env, arguments[0], arguments[1], place);
}

napi_value addon_open_at(napi_env env, napi_callback_info info) {
  napi_value arguments[4];
  struct place place;
  int flags;
  uint32_t mode;
  if (!get_arguments(env, info, 4, arguments) || !get_int(env, arguments[2], &flags) ||
      !get_u32(env, arguments[3], &mode) || !begin(env, arguments[0], arguments[1], &place)) {
    return NULL;
  }
  int fd = open_resolved(&place.resolver, flags, mode);
  if (fd < 0) return finish_call(env, &place, errno, "openat");
  finish(&place);
  return make_number(env, fd);
}

napi_value addon_open_root(napi_env env, napi_callback_info info) {
  napi_value arguments[1];
  struct bytes_view path;
  if (!get_arguments(env, info, 1, arguments) || !get_buffer(env, arguments[0], &path)) return NULL;
  char *copy = strndup(path.length > 0 ? (const char *)path.data : "", path.length);
  int error = copy == NULL ? ENOMEM : copy[0] != '/' || strlen(copy) != path.length ? EINVAL : 0;
  int fd = -1;
  if (error == 0) {
    do fd = open(copy, O_PATH | O_DIRECTORY | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    error = error_of(fd);
  }
  free(copy);
  if (error == 0) return make_number(env, fd);
  throw_errno(env, error, "open", (const char *)path.data, path.length);
  return NULL;
}

napi_value addon_stat_at(napi_env env, napi_callback_info info) {
  napi_value arguments[2];
  struct place place;
  if (!get_arguments(env, info, 2, arguments) || !begin(env, arguments[0], arguments[1], &place)) return NULL;
  struct statx status;
  int error = status_at(place.fd, place.name, &status);
  if (error != 0) return finish_call(env, &place, error, "statx");
  finish(&place);
  return make_stat(env, &status);
}

napi_value addon_mkdir_at(napi_env env, napi_callback_info info) {
  struct place place;
  uint32_t mode;
  if (!begin_with_mode(env, info, &place, &mode)) return NULL;
  return finish_call(env, &place, error_of(mkdirat(place.fd, place.name, mode)), "mkdirat");
}

napi_value addon_symlink_at(napi_env env, napi_callback_info info) {
  napi_value arguments[3];
  struct place place;
  struct bytes_view target;
  if (!get_arguments(env, info, 3, arguments) || !get_buffer(env, arguments[0], &target) ||
      !begin(env, arguments[1], arguments[2], &place)) {
    return NULL;
  }
  char text[PATH_MAX];
  int error = target.length >= sizeof text ? ENAMETOOLONG : 0;
  if (error == 0) {
    if (target.length > 0) memcpy(text, target.data, target.length);
    text[target.length] = 0;
    error = strlen(text) != target.length ? EINVAL : error_of(symlinkat(text, place.fd, place.name));
  }
  return finish_call(env, &place, error, "symlinkat");
}

napi_value addon_mknod_at(napi_env env, napi_callback_info info) {
  napi_value arguments[5];
  struct place place;
  uint32_t mode, device_major, device_minor;
  if (!get_arguments(env, info, 5, arguments) || !get_u32(env, arguments[2], &mode) ||
      !get_u32(env, arguments[3], &device_major) || !get_u32(env, arguments[4], &device_minor) ||
      !begin(env, arguments[0], arguments[1], &place)) {
    return NULL;
  }
  int result = mknodat(place.fd, place.name, mode, makedev(device_major, device_minor));
  return finish_call(env, &place, error_of(result), "mknodat");
}

typedef int (*two_place_call)(const struct place *from, const struct place *to, unsigned flags);

static napi_value call_on_two(napi_env env, napi_value *arguments, unsigned flags, two_place_call call, const char *syscall) {
  struct place from, to;
  if (!begin(env, arguments[0], arguments[1], &from)) return NULL;
  if (!begin(env, arguments[0], arguments[2], &to)) {
    finish(&from);
    return NULL;
  }
  int error = error_of(call(&from, &to, flags));
  finish(&to);
  return finish_call(env, &from, error, syscall);
}

static int link_places(const struct place *from, const struct place *to, unsigned flags) {
  return linkat(from->fd, from->name, to->fd, to->name, (int)flags);
}

static int rename_places(const struct place *from, const struct place *to, unsigned flags) {
  // Old sandboxes know renameat only.
  if (flags == 0) return renameat(from->fd, from->name, to->fd, to->name);
  return (int)syscall(SYS_renameat2, from->fd, from->name, to->fd, to->name, flags);
}

napi_value addon_link_at(napi_env env, napi_callback_info info) {
  napi_value arguments[3];
  if (!get_arguments(env, info, 3, arguments)) return NULL;
  return call_on_two(env, arguments, 0, link_places, "linkat");
}

napi_value addon_rename_at(napi_env env, napi_callback_info info) {
  napi_value arguments[4];
  uint32_t flags;
  if (!get_arguments(env, info, 4, arguments) || !get_u32(env, arguments[3], &flags)) return NULL;
  return call_on_two(env, arguments, flags, rename_places, "renameat2");
}

static napi_value remove_at(napi_env env, napi_callback_info info, int flags) {
  napi_value arguments[2];
  struct place place;
  if (!get_arguments(env, info, 2, arguments) || !begin(env, arguments[0], arguments[1], &place)) return NULL;
  return finish_call(env, &place, error_of(unlinkat(place.fd, place.name, flags)), "unlinkat");
}

napi_value addon_unlink_at(napi_env env, napi_callback_info info) {
  return remove_at(env, info, 0);
}

napi_value addon_rmdir_at(napi_env env, napi_callback_info info) {
  return remove_at(env, info, AT_REMOVEDIR);
}

napi_value addon_readlink_at(napi_env env, napi_callback_info info) {
  napi_value arguments[2];
  struct place place;
  if (!get_arguments(env, info, 2, arguments) || !begin(env, arguments[0], arguments[1], &place)) return NULL;
  char target[PATH_MAX];
  ssize_t length = readlinkat(place.fd, place.name, target, sizeof target);
  if (length < 0) return finish_call(env, &place, errno, "readlinkat");
  finish(&place);
  return make_buffer_copy(env, target, (size_t)length);
}

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
  if (!begin_with_mode(env, info, &place, &mode)) return NULL;
  return finish_call(env, &place, chmod_place(&place, mode & 07777), "fchmodat2");
}

napi_value addon_chown_at(napi_env env, napi_callback_info info) {
  napi_value arguments[4];
  struct place place;
  uint32_t uid, gid;
  if (!get_arguments(env, info, 4, arguments) || !get_u32(env, arguments[2], &uid) ||
      !get_u32(env, arguments[3], &gid) || !begin(env, arguments[0], arguments[1], &place)) {
    return NULL;
  }
  return finish_call(env, &place, error_of(fchownat(place.fd, place.name, uid, gid, AT_SYMLINK_NOFOLLOW)), "fchownat");
}

napi_value addon_utimes_at(napi_env env, napi_callback_info info) {
  napi_value arguments[3];
  struct place place;
  int64_t mtime_ns;
  if (!get_arguments(env, info, 3, arguments) || !get_i64(env, arguments[2], &mtime_ns) ||
      !begin(env, arguments[0], arguments[1], &place)) {
    return NULL;
  }
  struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, to_timespec(mtime_ns)};
  return finish_call(env, &place, error_of(utimensat(place.fd, place.name, times, AT_SYMLINK_NOFOLLOW)), "utimensat");
}

/* A place whose object is opened for its extended attributes. After begin_xattrs() has succeeded, finish_xattrs() releases it. */
struct xattr_place {
  struct place place;
  struct xattr_target target;
  struct xattr_scratch scratch;
};

static bool begin_xattrs(napi_env env, napi_value root_value, napi_value path_value, struct xattr_place *xattrs) {
  if (!begin(env, root_value, path_value, &xattrs->place)) return false;
  int fd = open_resolved(&xattrs->place.resolver, O_PATH, 0);
  int error = error_of(fd);
  if (error == 0 && !xattr_scratch_init(&xattrs->scratch)) error = ENOMEM;
  if (error != 0) {
    if (fd >= 0) close(fd);
    finish_call(env, &xattrs->place, error, "openat");
    return false;
  }
  xattrs->target = xattr_path_only(fd);
  return true;
}

/* Answers `result`, or throws when `error` is not 0. */
static napi_value finish_xattrs(napi_env env, struct xattr_place *xattrs, napi_value result, int error, const char *syscall) {
  close(xattrs->target.fd);
  xattr_scratch_free(&xattrs->scratch);
  return finish_call(env, &xattrs->place, error, syscall) == NULL ? NULL : result;
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
