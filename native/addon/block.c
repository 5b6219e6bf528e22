#include "block.h"

#include <stdlib.h>
#include <string.h>

#include "blake3.h"

enum { ID_BYTES = 32, NAME_BYTES = ID_BYTES + 1 + 4, KIND_DATA = 0, CODEC_STORED = 0, CODEC_ZSTD = 1 };

struct block_header {
  uint32_t magic;
  uint32_t codec;
  uint32_t payload_bytes;
  uint32_t raw_bytes;
  uint32_t count;
  uint32_t reserved;
  uint8_t checksum[16]; /* of everything else */
};
_Static_assert(sizeof(struct block_header) == 40, "BLOCK_HEADER_BYTES in pack-format.ts");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are little-endian and written as they lie in memory");

static const uint32_t block_magic = 0x314b4c42;

/* Makes `*bytes` hold at least `needed`. */
static bool grow(uint8_t **bytes, size_t *room, size_t needed) {
  if (needed <= *room) return true;
  size_t wanted = *room * 2 > needed ? *room * 2 : needed;
  uint8_t *grown = realloc(*bytes, wanted);
  if (grown == NULL) return false;
  *bytes = grown;
  *room = wanted;
  return true;
}

bool block_add(struct block_builder *builder, const uint8_t id[32], const uint8_t *bytes, uint32_t length) {
  if (builder->used + length > UINT32_MAX || !grow(&builder->raw, &builder->room, builder->used + length) ||
      !grow(&builder->names, &builder->names_room, (builder->count + 1) * NAME_BYTES)) {
    return false;
  }
  uint8_t *name = builder->names + builder->count * NAME_BYTES;
  memcpy(name, id, ID_BYTES);
  name[ID_BYTES] = KIND_DATA;
  memcpy(name + ID_BYTES + 1, &length, sizeof length);
  if (length > 0) memcpy(builder->raw + builder->used, bytes, length);
  builder->used += length;
  builder->count++;
  return true;
}

/* Returns the length of the packed objects, or 0 when they stay as they are. */
static size_t pack(struct block_builder *builder, struct zstd *zstd, double worthwhile) {
  if (zstd == NULL || builder->used == 0 || !grow(&builder->packed, &builder->packed_room, zstd_bound(builder->used))) {
    return 0;
  }
  size_t packed = zstd_compress(zstd, builder->packed, builder->packed_room, builder->raw, builder->used);
  return (double)packed < (double)builder->used * worthwhile ? packed : 0;
}

static void checksum(struct block_header *header, size_t length) {
  uint8_t start[offsetof(struct block_header, checksum) + BLAKE3_OUT_BYTES], id[BLAKE3_OUT_BYTES];
  memcpy(start, header, offsetof(struct block_header, checksum));
  blake3_hash((uint8_t *)header + sizeof *header, length - sizeof *header,
              start + offsetof(struct block_header, checksum));
  blake3_hash(start, sizeof start, id);
  memcpy(header->checksum, id, sizeof header->checksum);
}

uint8_t *block_finish(struct block_builder *builder, struct zstd *zstd, double worthwhile, size_t *length) {
  size_t packed = pack(builder, zstd, worthwhile), names = builder->count * NAME_BYTES;
  const uint8_t *payload = packed > 0 ? builder->packed : builder->raw;
  size_t payload_bytes = packed > 0 ? packed : builder->used;
  *length = sizeof(struct block_header) + names + payload_bytes;
  uint8_t *block = malloc(*length);
  if (block == NULL) return NULL;
  struct block_header *header = (struct block_header *)block;
  *header = (struct block_header){
      .magic = block_magic,
      .codec = packed > 0 ? CODEC_ZSTD : CODEC_STORED,
      .payload_bytes = (uint32_t)payload_bytes,
      .raw_bytes = (uint32_t)builder->used,
      .count = (uint32_t)builder->count,
  };
  memcpy(block + sizeof *header, builder->names, names);
  if (payload_bytes > 0) memcpy(block + sizeof *header + names, payload, payload_bytes);
  checksum(header, *length);
  builder->used = builder->count = 0;
  return block;
}

void block_free(struct block_builder *builder) {
  free(builder->raw);
  free(builder->names);
  free(builder->packed);
}
