/*
 * The log of a recording (native/helper/seen.h), as far as it tells of paths that were only looked at: of a large `find` or a build that is
 * nearly all of it, and an object in JavaScript for each takes longer than all else. Offsets into a log have 32 bits.
 */
#ifndef SAVEPOINT_LOOKS_H
#define SAVEPOINT_LOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "napi-util.h"

/* `enum frame_type` and `enum seen_as` of the helper. */
enum { FRAME_SEEN = 30, FRAME_SEEN_AS = 31 };
enum seen_as { SEEN_READ = 1, SEEN_LOOKED_AT = 4, SEEN_LISTED = 8, SEEN_EXECUTED = 32, SEEN_MOVED = 128 };

/* `struct logged_stat` of the helper. */
struct logged_stat {
  uint32_t mode, uid, gid, nlink;
  uint64_t size;
  int64_t mtime_ns, ctime_ns;
  uint64_t ino, dev, rdev;
};

struct text_view {
  const char *bytes;
  size_t length;
};

/* One frame, as views of the log. */
struct seen_frame {
  uint8_t type;
  uint16_t as;
  uint32_t number;
  struct text_view path, target; /* without bytes: there is none */
  const uint8_t *stat;           /* NULL: nothing was there */
  bool has_acl;                  /* what its mode says of the group is not what that may */
  size_t end;                    /* where the next one begins */
};

/* False at the end of the log, and where it goes on with something else than a frame that is whole. */
bool seen_frame_at(const struct bytes_view *log, size_t offset, struct seen_frame *frame);

/* What settleLooks gives for each path. */
struct settled {
  uint32_t offset; /* of its frame */
  uint32_t as;
};

#endif
