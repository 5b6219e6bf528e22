/*
 * The hash is a binary tree over chunks of 1 KiB. Up to eight whole chunks, or eight nodes above them, are compressed
 * side by side, one in each lane of a vector; the compiler makes of it what the processor has.
 */
#include "blake3.h"

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are read as they lie in memory");

enum { BLOCK_BYTES = 64, LANES = 8 };
enum { CHUNK_START = 1, CHUNK_END = 2, PARENT = 4, ROOT = 8 };

typedef uint32_t lanes __attribute__((vector_size(4 * LANES)));
#define ALL(word) ((lanes){0} + (word))

#ifdef SAVEPOINT_ONE_PROCESSOR /* tests: what another processor would get */
#define PER_PROCESSOR
#elif defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
#define PER_PROCESSOR __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define PER_PROCESSOR
#endif

static const uint32_t iv[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

/* Written once for words and for vectors of words. */
#define ROTATE(x, n) (((x) >> (n)) | ((x) << (32 - (n))))
#define G(a, b, c, d, x, y) \
  do { \
    a += b + (x), d = ROTATE(d ^ a, 16); \
    c += d, b = ROTATE(b ^ c, 12); \
    a += b + (y), d = ROTATE(d ^ a, 8); \
    c += d, b = ROTATE(b ^ c, 7); \
  } while (0)
#define ROUND(s, m, i0, i1, i2, i3, i4, i5, i6, i7, i8, i9, i10, i11, i12, i13, i14, i15) \
  do { \
    G(s[0], s[4], s[8], s[12], m[i0], m[i1]); \
    G(s[1], s[5], s[9], s[13], m[i2], m[i3]); \
    G(s[2], s[6], s[10], s[14], m[i4], m[i5]); \
    G(s[3], s[7], s[11], s[15], m[i6], m[i7]); \
    G(s[0], s[5], s[10], s[15], m[i8], m[i9]); \
    G(s[1], s[6], s[11], s[12], m[i10], m[i11]); \
    G(s[2], s[7], s[8], s[13], m[i12], m[i13]); \
    G(s[3], s[4], s[9], s[14], m[i14], m[i15]); \
  } while (0)
/* The words of a block are permuted from round to round. */
#define ROUNDS(s, m) \
  do { \
    ROUND(s, m, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); \
    ROUND(s, m, 2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8); \
    ROUND(s, m, 3, 4, 10, 12, 13, 2, 7, 14, 6, 5, 9, 0, 11, 15, 8, 1); \
    ROUND(s, m, 10, 7, 12, 9, 14, 3, 13, 15, 4, 0, 11, 2, 5, 8, 1, 6); \
    ROUND(s, m, 12, 13, 9, 11, 15, 10, 14, 8, 7, 2, 5, 3, 0, 1, 6, 4); \
    ROUND(s, m, 9, 14, 11, 5, 8, 12, 15, 1, 13, 3, 0, 10, 2, 6, 4, 7); \
    ROUND(s, m, 11, 15, 5, 0, 1, 9, 8, 6, 14, 10, 2, 12, 3, 4, 7, 13); \
  } while (0)

/* Eight rows of eight words become eight columns: pairs of words, then of pairs, then halves change places. */
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (lanes){__VA_ARGS__})
#define TRANSPOSE(r) \
  do { \
    lanes p[8], q[8]; \
    for (int i = 0; i < 8; i += 2) { \
      p[i] = SHUFFLE(r[i], r[i + 1], 0, 8, 2, 10, 4, 12, 6, 14); \
      p[i + 1] = SHUFFLE(r[i], r[i + 1], 1, 9, 3, 11, 5, 13, 7, 15); \
    } \
    for (int i = 0; i < 8; i += 4) { \
      for (int j = 0; j < 2; j++) { \
        q[i + j] = SHUFFLE(p[i + j], p[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13); \
        q[i + j + 2] = SHUFFLE(p[i + j], p[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15); \
      } \
    } \
    for (int i = 0; i < 4; i++) { \
      r[i] = SHUFFLE(q[i], q[i + 4], 0, 1, 2, 3, 8, 9, 10, 11); \
      r[i + 4] = SHUFFLE(q[i], q[i + 4], 4, 5, 6, 7, 12, 13, 14, 15); \
    } \
  } while (0)

static void compress(uint32_t cv[8], const uint8_t block[BLOCK_BYTES], uint32_t length, uint64_t counter, uint32_t flags) {
  uint32_t m[16], s[16];
  memcpy(m, block, sizeof m);
  memcpy(s, cv, 8 * sizeof *s);
  memcpy(s + 8, iv, 4 * sizeof *s);
  s[12] = (uint32_t)counter;
  s[13] = (uint32_t)(counter >> 32);
  s[14] = length;
  s[15] = flags;
  ROUNDS(s, m);
  for (int i = 0; i < 8; i++) cv[i] = s[i] ^ s[i + 8];
}

/*
 * `count` inputs of `blocks` whole blocks each: input i has the number `counter` + i * `step`. Unused lanes repeat the
 * first input. The first block gets `first` among its flags, the last one `last`.
 */
PER_PROCESSOR
static void compress_lanes(const uint8_t *input, size_t stride, size_t count, size_t blocks, uint64_t counter,
                           uint64_t step, uint32_t flags, uint32_t first, uint32_t last, uint32_t out[][8]) {
  const uint8_t *lane_input[LANES];
  lanes h[8], low, high;
  for (size_t lane = 0; lane < LANES; lane++) {
    lane_input[lane] = input + (lane < count ? lane * stride : 0);
    uint64_t number = counter + lane * step;
    low[lane] = (uint32_t)number;
    high[lane] = (uint32_t)(number >> 32);
  }
  for (int i = 0; i < 8; i++) h[i] = ALL(iv[i]);
  for (size_t block = 0; block < blocks; block++) {
    lanes m[16];
    for (size_t lane = 0; lane < LANES; lane++) {
      memcpy(&m[lane], lane_input[lane] + block * BLOCK_BYTES, sizeof *m);
      memcpy(&m[LANES + lane], lane_input[lane] + block * BLOCK_BYTES + sizeof *m, sizeof *m);
    }
    TRANSPOSE(m);
    TRANSPOSE((m + LANES));
    uint32_t marks = flags | (block == 0 ? first : 0) | (block == blocks - 1 ? last : 0);
    lanes s[16] = {h[0],       h[1],       h[2],       h[3],       h[4], h[5], h[6],             h[7],
                   ALL(iv[0]), ALL(iv[1]), ALL(iv[2]), ALL(iv[3]), low,  high, ALL(BLOCK_BYTES), ALL(marks)};
    ROUNDS(s, m);
    for (int i = 0; i < 8; i++) h[i] = s[i] ^ s[i + 8];
  }
  for (size_t lane = 0; lane < count; lane++) {
    for (int i = 0; i < 8; i++) out[lane][i] = h[i][lane];
  }
}

/* A chunk of any length up to its full size. `root`: it is the whole input. */
static void compress_chunk(const uint8_t *data, size_t length, uint64_t counter, uint32_t root, uint32_t cv[8]) {
  uint8_t block[BLOCK_BYTES];
  uint32_t flags = CHUNK_START;
  memcpy(cv, iv, sizeof iv);
  for (; length > BLOCK_BYTES; data += BLOCK_BYTES, length -= BLOCK_BYTES) {
    compress(cv, data, BLOCK_BYTES, counter, flags);
    flags = 0;
  }
  memset(block, 0, sizeof block);
  if (length > 0) memcpy(block, data, length);
  compress(cv, block, (uint32_t)length, counter, flags | CHUNK_END | root);
}

static void compress_parent(const uint32_t left[8], const uint32_t right[8], uint32_t root, uint32_t cv[8]) {
  uint8_t block[BLOCK_BYTES];
  memcpy(block, left, BLOCK_BYTES / 2);
  memcpy(block + BLOCK_BYTES / 2, right, BLOCK_BYTES / 2);
  memcpy(cv, iv, sizeof iv);
  compress(cv, block, BLOCK_BYTES, 0, PARENT | root);
}

/* Adds a finished subtree of `size` chunks (a power of two). More input follows: so none of these nodes is the root. */
static void push(struct blake3 *state, const uint32_t subtree[8], uint64_t size) {
  uint32_t cv[8];
  memcpy(cv, subtree, sizeof cv);
  state->chunks += size;
  for (uint64_t merged = size; (state->chunks & merged) == 0; merged <<= 1) {
    compress_parent(state->stack[--state->depth], cv, 0, cv);
  }
  memcpy(state->stack[state->depth++], cv, sizeof cv);
}

/* Takes whole chunks, but never the last one; returns how many. */
static size_t push_chunks(struct blake3 *state, const uint8_t *data, size_t length) {
  size_t count = (length - 1) / BLAKE3_CHUNK_BYTES;
  if (count > LANES) count = LANES;
  uint32_t cvs[LANES][8];
  compress_lanes(data, BLAKE3_CHUNK_BYTES, count, BLAKE3_CHUNK_BYTES / BLOCK_BYTES, state->chunks, 1, 0, CHUNK_START,
                 CHUNK_END, cvs);
  if (count == LANES && state->chunks % LANES == 0) {
    // A whole subtree: its lower nodes side by side, too.
    for (size_t nodes = LANES / 2; nodes > 1; nodes /= 2) {
      uint32_t parents[LANES][8];
      compress_lanes((const uint8_t *)cvs, BLOCK_BYTES, nodes, 1, 0, 0, PARENT, 0, 0, parents);
      memcpy(cvs, parents, nodes * sizeof *cvs);
    }
    compress_parent(cvs[0], cvs[1], 0, cvs[0]);
    push(state, cvs[0], LANES);
  } else {
    for (size_t i = 0; i < count; i++) push(state, cvs[i], 1);
  }
  return count;
}

void blake3_init(struct blake3 *state) {
  state->chunks = 0;
  state->depth = state->buffered = 0;
}

void blake3_update(struct blake3 *state, const uint8_t *data, size_t length) {
  while (length > 0) {
    if (state->buffered == BLAKE3_CHUNK_BYTES) {
      uint32_t cv[8];
      compress_chunk(state->buffer, BLAKE3_CHUNK_BYTES, state->chunks, 0, cv);
      push(state, cv, 1);
      state->buffered = 0;
    }
    if (state->buffered == 0 && length > 2 * BLAKE3_CHUNK_BYTES) {
      size_t taken = push_chunks(state, data, length) * BLAKE3_CHUNK_BYTES;
      data += taken;
      length -= taken;
      continue;
    }
    size_t room = BLAKE3_CHUNK_BYTES - state->buffered, taken = length < room ? length : room;
    memcpy(state->buffer + state->buffered, data, taken);
    state->buffered += (uint32_t)taken;
    data += taken;
    length -= taken;
  }
}

void blake3_digest(const struct blake3 *state, uint8_t out[BLAKE3_OUT_BYTES]) {
  uint32_t cv[8];
  compress_chunk(state->buffer, state->buffered, state->chunks, state->depth == 0 ? ROOT : 0, cv);
  for (uint32_t depth = state->depth; depth > 0; depth--) {
    compress_parent(state->stack[depth - 1], cv, depth == 1 ? ROOT : 0, cv);
  }
  memcpy(out, cv, BLAKE3_OUT_BYTES);
}

void blake3_hash(const uint8_t *data, size_t length, uint8_t out[BLAKE3_OUT_BYTES]) {
  struct blake3 state;
  blake3_init(&state);
  blake3_update(&state, data, length);
  blake3_digest(&state, out);
}
