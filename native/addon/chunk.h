/* Content-defined chunking for the rest of the addon. */
#ifndef SAVEPOINT_CHUNK_H
#define SAVEPOINT_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct chunk_limits {
  size_t minimum, average, maximum;
};

/* 64 bytes is how far the hash looks back. */
static inline bool chunk_limits_hold(uint64_t minimum, uint64_t average, uint64_t maximum) {
  return minimum >= 64 && minimum <= average && average <= maximum && maximum <= UINT32_MAX;
}

/* Room that chunk_ends needs for so many bytes. */
size_t chunk_most(const struct chunk_limits *lengths, size_t bytes);
/* Stores where the chunks of data[start, end) end, as far as that is certain; with `last`, the tail is one too. */
size_t chunk_ends(const uint8_t *data, size_t start, size_t end, const struct chunk_limits *lengths, bool last,
                  uint32_t *ends);

#endif
