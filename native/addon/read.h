/*
 * Reads entries whole: content, link target, xattrs, and the stat that they belong to. Only regular files are ever opened
 * for reading; everything else is held by an O_PATH descriptor, which cannot block and has no side effects.
 */
#ifndef SAVEPOINT_READ_H
#define SAVEPOINT_READ_H

#include <stdbool.h>

#include "resolve.h"
#include "status.h"
#include "xattr.h"

struct reader {
  struct resolver resolver;
  struct xattr_scratch scratch;
  uint8_t *out; /* where contents, targets and xattrs go, one behind another: set by the caller, who may change it */
  size_t used, size;
  uint64_t max_content;
  uint32_t retries;
  int64_t wait_left_ns;
  uint32_t euid;
};

enum read_outcome {
  READ_DONE,     /* `meta` says what there is, or why not */
  READ_FULL,     /* it does not fit behind what `out` holds already */
  READ_REPLACED, /* within read.c only */
};

/* False when there is no memory. `out`, `used` and `size` are zero then. */
bool reader_init(struct reader *reader, int root, uint64_t max_content, uint32_t retries);
void reader_free(struct reader *reader);
enum read_outcome reader_read(struct reader *reader, const char *path, size_t length, struct meta *meta);

/* How many paths a NUL-separated list holds. */
size_t count_paths(const uint8_t *paths, size_t paths_length);

#endif
