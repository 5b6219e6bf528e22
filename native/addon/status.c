#include "status.h"

#include <errno.h>

#include "napi-util.h"

/* Of root's `chattr +i` and `+a`. */
static const uint64_t lock_attributes = STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND;
static const unsigned status_mask = STATX_BASIC_STATS | STATX_BTIME | STATX_MNT_ID;

int status_at(int directory, const char *name, struct statx *out) {
  return statx(directory, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, status_mask, out) == 0 ? 0 : errno;
}

int status_of_fd(int fd, struct statx *out) {
  return statx(fd, "", AT_EMPTY_PATH, status_mask, out) == 0 ? 0 : errno;
}

static int64_t birth_ns(const struct statx *status) {
  return (status->stx_mask & STATX_BTIME) != 0 ? to_ns(status->stx_btime) : 0;
}

void meta_from_status(struct meta *meta, const struct statx *status) {
  meta->mode = status->stx_mode;
  meta->nlink = status->stx_nlink;
  meta->uid = status->stx_uid;
  meta->gid = status->stx_gid;
  meta->size = status->stx_size;
  meta->mtime_ns = to_ns(status->stx_mtime);
  meta->ctime_ns = to_ns(status->stx_ctime);
  meta->ino = status->stx_ino;
  meta->rdev_major = status->stx_rdev_major;
  meta->rdev_minor = status->stx_rdev_minor;
  meta->btime_ns = birth_ns(status);
  meta->dev = makedev(status->stx_dev_major, status->stx_dev_minor);
}

napi_value make_stat(napi_env env, const struct statx *status) {
  napi_value object;
  if (napi_create_object(env, &object) != napi_ok) return NULL;
  bool done = set_number(env, object, "mode", status->stx_mode) &&
              set_number(env, object, "nlink", status->stx_nlink) &&
              set_number(env, object, "uid", status->stx_uid) &&
              set_number(env, object, "gid", status->stx_gid) &&
              set_number(env, object, "size", (double)status->stx_size) &&
              set_i64(env, object, "mtimeNs", to_ns(status->stx_mtime)) &&
              set_i64(env, object, "ctimeNs", to_ns(status->stx_ctime)) &&
              set_i64(env, object, "btimeNs", birth_ns(status)) &&
              set_u64(env, object, "ino", status->stx_ino) &&
              set_u64(env, object, "dev", makedev(status->stx_dev_major, status->stx_dev_minor)) &&
              set_u64(env, object, "mount", (status->stx_mask & STATX_MNT_ID) != 0 ? status->stx_mnt_id : 0) &&
              set_number(env, object, "rdevMajor", status->stx_rdev_major) &&
              set_number(env, object, "rdevMinor", status->stx_rdev_minor) &&
              set_number(env, object, "blocks", (double)status->stx_blocks) &&
              set_number(env, object, "locks", (double)(status->stx_attributes & lock_attributes));
  return done ? object : NULL;
}
