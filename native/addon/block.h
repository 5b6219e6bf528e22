/* Collects objects into blocks of a pack, as docs/format.md describes them and src/store/pack-format.ts writes them. */
#ifndef SAVEPOINT_BLOCK_H
#define SAVEPOINT_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "zstd.h"

struct block_builder {
  uint8_t *raw; /* the objects one after another */
  size_t used, room;
  uint8_t *names;
  size_t count, names_room;
  uint8_t *packed; /* where zstd writes */
  size_t packed_room;
};

/* False: no memory, and nothing was added. */
bool block_add(struct block_builder *builder, const uint8_t id[32], const uint8_t *bytes, uint32_t length);
/*
 * The block so far, malloc'd, and an empty builder; NULL when there is no memory, and then the builder is as it was. Not
 * to be called when it is empty. The objects are packed when that makes them smaller than `worthwhile` of them; `zstd`
 * may be NULL.
 */
uint8_t *block_finish(struct block_builder *builder, struct zstd *zstd, double worthwhile, size_t *length);
void block_free(struct block_builder *builder);

#endif
