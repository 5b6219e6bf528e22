/*
 * zstd as Node carries it: its program exports the library's functions, and calling them here saves a new context per
 * block and copies on both sides. A Node that does not export them has no zstd for us; JavaScript then uses node:zlib.
 */
#ifndef SAVEPOINT_ZSTD_H
#define SAVEPOINT_ZSTD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct zstd; /* a context, for one thread at a time */

/* One of ZSTD_cParameter and its value. */
struct zstd_parameter {
  int32_t name, value;
};

/* NULL: no zstd here, no memory, or a parameter that it refuses. */
struct zstd *zstd_new(const struct zstd_parameter *parameters, size_t count);
void zstd_free(struct zstd *context);
/* How much room a result can need. */
size_t zstd_bound(size_t bytes);
/* Returns the length of the frame, or 0 when it failed. */
size_t zstd_compress(struct zstd *context, uint8_t *out, size_t room, const uint8_t *bytes, size_t length);

#endif
