/* The *at family: one call on one path beneath a root descriptor, never through a symlink. Attributes: at-attributes.c. */
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
#include "at-place.h"
#include "status.h"

napi_value addon_open_at(napi_env env, napi_callback_info info) {
  napi_value arguments[4];
  struct place place;
  int flags;
  uint32_t mode;
  if (!get_arguments(env, info, 4, arguments) || !get_int(env, arguments[2], &flags) ||
      !get_u32(env, arguments[3], &mode) || !place_begin(env, arguments[0], arguments[1], &place)) {
    return NULL;
  }
  int fd = open_resolved(&place.resolver, flags, mode);
  if (fd < 0) return place_finish_call(env, &place, errno, "openat");
  place_finish(&place);
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
  if (!get_arguments(env, info, 2, arguments) || !place_begin(env, arguments[0], arguments[1], &place)) return NULL;
  struct statx status;
  int error = status_at(place.fd, place.name, &status);
  if (error != 0) return place_finish_call(env, &place, error, "statx");
  place_finish(&place);
  return make_stat(env, &status);
}

napi_value addon_mkdir_at(napi_env env, napi_callback_info info) {
  struct place place;
  uint32_t mode;
  if (!place_begin_with_mode(env, info, &place, &mode)) return NULL;
  return place_finish_call(env, &place, error_of(mkdirat(place.fd, place.name, mode)), "mkdirat");
}

napi_value addon_symlink_at(napi_env env, napi_callback_info info) {
  napi_value arguments[3];
  struct place place;
  struct bytes_view target;
  if (!get_arguments(env, info, 3, arguments) || !get_buffer(env, arguments[0], &target) ||
      !place_begin(env, arguments[1], arguments[2], &place)) {
    return NULL;
  }
  char text[PATH_MAX];
  int error = target.length >= sizeof text ? ENAMETOOLONG : 0;
  if (error == 0) {
    if (target.length > 0) memcpy(text, target.data, target.length);
    text[target.length] = 0;
    error = strlen(text) != target.length ? EINVAL : error_of(symlinkat(text, place.fd, place.name));
  }
  return place_finish_call(env, &place, error, "symlinkat");
}

napi_value addon_mknod_at(napi_env env, napi_callback_info info) {
  napi_value arguments[5];
  struct place place;
  uint32_t mode, device_major, device_minor;
  if (!get_arguments(env, info, 5, arguments) || !get_u32(env, arguments[2], &mode) ||
      !get_u32(env, arguments[3], &device_major) || !get_u32(env, arguments[4], &device_minor) ||
      !place_begin(env, arguments[0], arguments[1], &place)) {
    return NULL;
  }
  int result = mknodat(place.fd, place.name, mode, makedev(device_major, device_minor));
  return place_finish_call(env, &place, error_of(result), "mknodat");
}

typedef int (*two_place_call)(const struct place *from, const struct place *to, unsigned flags);

static napi_value call_on_two(napi_env env, napi_value *arguments, unsigned flags, two_place_call call, const char *syscall) {
  struct place from, to;
  if (!place_begin(env, arguments[0], arguments[1], &from)) return NULL;
  if (!place_begin(env, arguments[0], arguments[2], &to)) {
    place_finish(&from);
    return NULL;
  }
  int error = error_of(call(&from, &to, flags));
  place_finish(&to);
  return place_finish_call(env, &from, error, syscall);
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
  if (!get_arguments(env, info, 2, arguments) || !place_begin(env, arguments[0], arguments[1], &place)) return NULL;
  return place_finish_call(env, &place, error_of(unlinkat(place.fd, place.name, flags)), "unlinkat");
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
  if (!get_arguments(env, info, 2, arguments) || !place_begin(env, arguments[0], arguments[1], &place)) return NULL;
  char target[PATH_MAX];
  ssize_t length = readlinkat(place.fd, place.name, target, sizeof target);
  if (length < 0) return place_finish_call(env, &place, errno, "readlinkat");
  place_finish(&place);
  return make_buffer_copy(env, target, (size_t)length);
}
