/*
 * writeFiles: creates regular files whole. A file that could not be completed is removed again, so what exists
 * afterwards is complete except for what its flags name.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "addon.h"
#include "napi-util.h"
#include "resolve.h"
#include "status.h"
#include "xattr.h"

enum { SPEC_SPARSE = 1, HOLE_BYTES = 4096 };

struct spec { /* as in addon.ts; the path follows */
  uint16_t path_length;
  uint16_t flags;
  uint32_t mode;
  uint32_t uid;
  uint32_t gid;
  int64_t mtime_ns;
  uint32_t content_offset;
  uint32_t content_length;
  uint32_t xattr_offset;
  uint32_t xattr_length;
};
_Static_assert(sizeof(struct spec) == 40, "the fixed part of a file's spec in addon.ts");

static bool lies_within(uint32_t offset, uint32_t length, size_t size) {
  return offset <= size && length <= size - offset;
}

/* Reads the spec at `*at` and steps over it. False at the end (`*at` == length) or where it is malformed. */
static bool next_spec(const struct bytes_view *specs, size_t data_size, size_t *at, struct spec *spec, const char **path) {
  size_t left = specs->length - *at;
  if (left < sizeof *spec) return false;
  memcpy(spec, specs->data + *at, sizeof *spec);
  if (left - sizeof *spec < spec->path_length || !lies_within(spec->content_offset, spec->content_length, data_size) ||
      !lies_within(spec->xattr_offset, spec->xattr_length, data_size)) {
    return false;
  }
  *path = (const char *)specs->data + *at + sizeof *spec;
  *at += sizeof *spec + spec->path_length;
  return true;
}

static int write_at(int fd, const uint8_t *data, size_t length, off_t offset) {
  while (length > 0) {
    ssize_t n = pwrite(fd, data, length, offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    data += n;
    offset += n;
    length -= (size_t)n;
  }
  return 0;
}

static bool is_zero(const uint8_t *data, size_t length) {
  return data[0] == 0 && memcmp(data, data + 1, length - 1) == 0;
}

/* Writes the runs of blocks that are not zero; the rest become holes. */
static int write_sparse(int fd, const uint8_t *data, size_t length) {
  size_t run = 0, at = 0;
  while (at < length) {
    size_t block = length - at < HOLE_BYTES ? length - at : HOLE_BYTES;
    if (is_zero(data + at, block)) {
      int error = write_at(fd, data + run, at - run, (off_t)run);
      if (error != 0) return error;
      run = at + block;
    }
    at += block;
  }
  int error = write_at(fd, data + run, at - run, (off_t)run);
  if (error != 0) return error;
  return ftruncate(fd, (off_t)length) == 0 ? 0 : errno;
}

/* Who is in its group now was anybody before, and the other way round: neither gets more than both had. See given-mode.ts. */
static mode_t without_group(mode_t mode) {
  mode_t both = (mode >> 3) & mode & S_IRWXO;
  return (mode & ~(mode_t)(S_IRWXG | S_IRWXO)) | (both << 3) | both;
}

static int set_owner(int fd, const struct spec *spec, struct meta *meta, mode_t *mode) {
  struct stat status;
  if (fstat(fd, &status) != 0) return errno;
  if (status.st_uid == spec->uid && status.st_gid == spec->gid) return 0;
  uid_t uid = status.st_uid == spec->uid ? (uid_t)-1 : spec->uid;
  gid_t gid = status.st_gid == spec->gid ? (gid_t)-1 : spec->gid;
  if (fchown(fd, uid, gid) == 0) return 0;
  // EINVAL: an id that our user namespace does not map.
  if (errno != EPERM && errno != EACCES && errno != EINVAL && errno != ENOTSUP) return errno;
  meta->flags |= FLAG_OWNER_FAILED;
  // A group that we are in can have it all the same: its rights would be those of another one.
  bool has_group = gid == (gid_t)-1 || (uid != (uid_t)-1 && fchown(fd, (uid_t)-1, gid) == 0);
  // Set-id bits with another owner than the one they were meant for would give away our own rights.
  *mode &= ~(mode_t)(S_ISUID | S_ISGID);
  if (!has_group) *mode = without_group(*mode);
  return 0;
}

static int set_mode(int fd, mode_t mode) {
  return fchmod(fd, mode) == 0 || errno == EPERM || errno == ENOTSUP ? 0 : errno;
}

static int set_mtime(int fd, int64_t mtime_ns) {
  struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, to_timespec(mtime_ns)};
  return futimens(fd, times) == 0 ? 0 : errno;
}

static int set_xattrs(int fd, const struct spec *spec, const uint8_t *data, struct xattr_scratch *scratch, struct meta *meta) {
  struct xattr_target target = xattr_open_file(fd);
  int refused;
  // Also with none to set: a default ACL of the directory has given the new file one that it must not keep.
  int error = xattr_apply(&target, scratch, data + spec->xattr_offset, spec->xattr_length, &refused);
  if (refused != 0) meta->flags |= FLAG_XATTRS_FAILED;
  return error;
}

/* The order matters: a change of owner or content drops set-id bits and capabilities, and user xattrs need a mode that
 * lets the owner write, so the mode comes after them. */
static int fill_file(int fd, const struct spec *spec, const uint8_t *data, struct xattr_scratch *scratch, struct meta *meta) {
  const uint8_t *content = data + spec->content_offset;
  int error = (spec->flags & SPEC_SPARSE) != 0 ? write_sparse(fd, content, spec->content_length)
                                               : write_at(fd, content, spec->content_length, 0);
  mode_t mode = spec->mode & 07777;
  if (error == 0) error = set_owner(fd, spec, meta, &mode);
  if (error == 0) error = set_xattrs(fd, spec, data, scratch, meta);
  if (error == 0) error = set_mode(fd, mode);
  if (error == 0) error = set_mtime(fd, spec->mtime_ns);
  struct statx status;
  if (error == 0) error = status_of_fd(fd, &status);
  if (error != 0) return error;
  meta_from_status(meta, &status);
  // fchmod may drop the set-group-id bit without a word.
  if ((status.stx_mode & 07777) != (spec->mode & 07777)) meta->flags |= FLAG_MODE_FAILED;
  return 0;
}

/* Unless somebody has put another file in its place. */
static void remove_own(const struct resolver *resolver, int fd) {
  struct stat ours, there;
  if (fstat(fd, &ours) == 0 && fstatat(resolver->parent, resolver->name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
      ours.st_ino == there.st_ino && ours.st_dev == there.st_dev) {
    unlinkat(resolver->parent, resolver->name, 0);
  }
}

static void write_file(struct resolver *resolver, const struct spec *spec, const char *path, const uint8_t *data,
                       struct xattr_scratch *scratch, struct meta *meta) {
  *meta = (struct meta){.error = resolve(resolver, path, spec->path_length)};
  if (meta->error != 0) return;
  int fd = open_resolved(resolver, O_CREAT | O_EXCL | O_WRONLY, 0600);
  if (fd < 0) {
    meta->error = errno;
    return;
  }
  int error = fill_file(fd, spec, data, scratch, meta);
  if (error != 0) {
    remove_own(resolver, fd);
    *meta = (struct meta){.error = error};
  }
  if (close(fd) != 0 && errno != EINTR && meta->error == 0) {
    // Network filesystems report lost writes here. The descriptor is gone, so there is nothing to compare with.
    meta->error = errno;
    unlinkat(resolver->parent, resolver->name, 0);
  }
}

napi_value addon_write_files(napi_env env, napi_callback_info info) {
  napi_value arguments[3];
  struct bytes_view specs, data;
  int root;
  if (!get_arguments(env, info, 3, arguments) || !get_int(env, arguments[0], &root) ||
      !get_buffer(env, arguments[1], &specs) || !get_buffer(env, arguments[2], &data)) {
    return NULL;
  }
  struct spec spec;
  const char *path;
  size_t count = 0, at = 0;
  while (next_spec(&specs, data.length, &at, &spec, &path)) count++;
  if (at != specs.length) {
    throw_errno(env, EINVAL, "writeFiles", NULL, 0); // malformed: nothing has been written
    return NULL;
  }
  struct xattr_scratch scratch;
  struct meta *metas;
  napi_value result;
  if (napi_create_buffer(env, count * sizeof *metas, (void **)&metas, &result) != napi_ok || !xattr_scratch_init(&scratch)) {
    throw_errno(env, ENOMEM, "malloc", NULL, 0);
    return NULL;
  }
  struct resolver resolver;
  resolver_init(&resolver, root);
  at = 0;
  for (size_t i = 0; next_spec(&specs, data.length, &at, &spec, &path); i++) {
    struct meta meta;
    write_file(&resolver, &spec, path, data.data, &scratch, &meta);
    memcpy((uint8_t *)metas + i * sizeof meta, &meta, sizeof meta); // a pooled Buffer need not be aligned
  }
  resolver_close(&resolver);
  xattr_scratch_free(&scratch);
  return result;
}
