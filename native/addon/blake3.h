/* BLAKE3 with its default length of 32 bytes, from the published specification. Plain memory: copies of a state go on
 * independently of each other. */
#ifndef SAVEPOINT_BLAKE3_H
#define SAVEPOINT_BLAKE3_H

#include <stddef.h>
#include <stdint.h>

enum { BLAKE3_OUT_BYTES = 32, BLAKE3_CHUNK_BYTES = 1024, BLAKE3_MAX_DEPTH = 54 /* 2^64 bytes */ };

struct blake3 {
  uint64_t chunks; /* finished ones */
  uint32_t stack[BLAKE3_MAX_DEPTH][8]; /* of finished subtrees, each larger than the next */
  uint32_t depth;
  uint32_t buffered;
  uint8_t buffer[BLAKE3_CHUNK_BYTES]; /* the chunk that may be the last */
};

void blake3_init(struct blake3 *state);
void blake3_update(struct blake3 *state, const uint8_t *data, size_t length);
/* Leaves the state as it is: more may follow. */
void blake3_digest(const struct blake3 *state, uint8_t out[BLAKE3_OUT_BYTES]);
void blake3_hash(const uint8_t *data, size_t length, uint8_t out[BLAKE3_OUT_BYTES]);

#endif
