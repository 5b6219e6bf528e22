/* statx, and the binary and JavaScript shapes in which its result leaves the addon. */
#ifndef SAVEPOINT_STATUS_H
#define SAVEPOINT_STATUS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <node_api.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#ifndef STATX_MNT_ID
#define STATX_MNT_ID 0x1000U
#endif
#ifndef STATX_MNT_ID_UNIQUE
#define STATX_MNT_ID_UNIQUE 0x4000U
#endif

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "records are little-endian and written as they lie in memory");

/* META in addon.ts: one result of readEntries and writeFiles. */
struct meta {
  int32_t error;
  uint32_t flags;
  uint32_t mode;
  uint32_t nlink;
  uint32_t uid;
  uint32_t gid;
  uint64_t size;
  int64_t mtime_ns;
  int64_t ctime_ns;
  uint64_t ino;
  uint32_t content_offset;
  uint32_t content_length;
  uint32_t xattr_offset;
  uint32_t xattr_length;
  uint32_t rdev_major;
  uint32_t rdev_minor;
  int64_t btime_ns;
  uint64_t dev;
  uint8_t id[32];
};
_Static_assert(sizeof(struct meta) == 128, "META.size_ in addon.ts");

/* META_FLAG in addon.ts. */
enum {
  FLAG_UNSTABLE = 1,
  FLAG_SPARSE = 2,
  FLAG_TOO_BIG = 4,
  FLAG_XATTRS_FAILED = 8,
  FLAG_OWNER_FAILED = 16,
  FLAG_MODE_FAILED = 32,
};

/* Beyond 1677 and 2262 the nearest time that 64 bits have, as in the helper. */
static inline int64_t to_ns(struct statx_timestamp time) {
  __extension__ __int128 ns = (__int128)time.tv_sec * 1000000000 + time.tv_nsec;
  return ns > INT64_MAX ? INT64_MAX : ns < INT64_MIN ? INT64_MIN : (int64_t)ns;
}

static inline struct timespec to_timespec(int64_t ns) {
  struct timespec time = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
  if (time.tv_nsec < 0) { /* before 1970: the seconds round down */
    time.tv_sec--;
    time.tv_nsec += 1000000000;
  }
  return time;
}

/* Both return 0 or an errno; the first does not follow `name`. */
int status_at(int directory, const char *name, struct statx *out);
int status_of_fd(int fd, struct statx *out);

/* Fills the fields that come from statx; leaves error, flags, offsets and lengths alone. */
void meta_from_status(struct meta *meta, const struct statx *status);
/* The `Stat` of addon.ts, or NULL with an exception pending. */
napi_value make_stat(napi_env env, const struct statx *status);

#endif
