/*
 * Content-defined chunking: a gear hash over the last 64 bytes, with normalised chunking as in FastCDC. A boundary depends
 * only on the bytes since the previous one, so it comes out the same however the input was cut into buffers.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "addon.h"
#include "chunk.h"
#include "napi-util.h"

/* The table decides every boundary: another seed would store all large files anew. */
static const uint64_t gear_seed = 0x53617665706f696eu; /* "Savepoin" */
static uint64_t gear[256];
static pthread_once_t gear_once = PTHREAD_ONCE_INIT;

static void fill_gear(void) {
  uint64_t state = gear_seed;
  for (int i = 0; i < 256; i++) { /* splitmix64 */
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    gear[i] = z ^ (z >> 31);
  }
}

struct limits {
  struct chunk_limits length;
  uint64_t strict, loose; /* a hash below it is a boundary: before and after the average length */
};

/* Scans [at, end) with `*hash` carried on; returns the length up to and with the boundary byte, or 0. */
static size_t find_boundary(const uint8_t *data, size_t at, size_t end, uint64_t below, uint64_t *hash) {
  uint64_t h = *hash;
  for (; at < end; at++) {
    h = (h << 1) + gear[data[at]];
    if (h < below) {
      *hash = h;
      return at + 1;
    }
  }
  *hash = h;
  return 0;
}

/* The length of the first chunk of `data`, or 0 when its boundary lies behind the end. */
static size_t next_chunk(const uint8_t *data, size_t length, const struct limits *limits) {
  size_t reach = length < limits->length.maximum ? length : limits->length.maximum;
  size_t normal = reach < limits->length.average ? reach : limits->length.average;
  uint64_t hash = 0;
  size_t cut = find_boundary(data, limits->length.minimum, normal, limits->strict, &hash);
  if (cut == 0 && reach > normal) cut = find_boundary(data, normal, reach, limits->loose, &hash);
  if (cut == 0 && reach == limits->length.maximum) cut = reach;
  return cut;
}

size_t chunk_most(const struct chunk_limits *lengths, size_t bytes) { return bytes / lengths->minimum + 1; }

size_t chunk_ends(const uint8_t *data, size_t start, size_t end, const struct chunk_limits *lengths, bool last,
                  uint32_t *ends) {
  pthread_once(&gear_once, fill_gear);
  // Four times rarer than 1/average before the average length, four times more frequent behind it.
  struct limits limits = {
      .length = *lengths,
      .strict = UINT64_MAX / lengths->average / 4,
      .loose = UINT64_MAX / lengths->average * 4,
  };
  size_t count = 0;
  for (size_t at = start; at < end;) {
    size_t length = next_chunk(data + at, end - at, &limits);
    if (length == 0 && !last) break;
    at = length == 0 ? end : at + length;
    ends[count++] = (uint32_t)at;
  }
  return count;
}

napi_value addon_chunk_buffer(napi_env env, napi_callback_info info) {
  napi_value arguments[7];
  struct bytes_view buffer;
  uint64_t start, end, minimum, average, maximum;
  bool last;
  if (!get_arguments(env, info, 7, arguments) || !get_buffer(env, arguments[0], &buffer) ||
      !get_size(env, arguments[1], &start) || !get_size(env, arguments[2], &end) ||
      !get_size(env, arguments[3], &minimum) || !get_size(env, arguments[4], &average) ||
      !get_size(env, arguments[5], &maximum) || !get_bool(env, arguments[6], &last)) {
    return NULL;
  }
  if (start > end || end > buffer.length || end > UINT32_MAX || !chunk_limits_hold(minimum, average, maximum)) {
    throw_errno(env, EINVAL, "chunk", NULL, 0);
    return NULL;
  }
  struct chunk_limits lengths = {.minimum = minimum, .average = average, .maximum = maximum};
  uint32_t *ends = malloc(chunk_most(&lengths, end - start) * sizeof *ends);
  if (ends == NULL) {
    throw_errno(env, ENOMEM, "chunk", NULL, 0);
    return NULL;
  }
  size_t count = chunk_ends(buffer.data, start, end, &lengths, last, ends);
  napi_value memory, result = NULL;
  void *copy;
  if (napi_create_arraybuffer(env, count * sizeof *ends, &copy, &memory) == napi_ok) {
    if (count > 0) memcpy(copy, ends, count * sizeof *ends);
    if (napi_create_typedarray(env, napi_uint32_array, count, memory, 0, &result) != napi_ok) result = NULL;
  }
  free(ends);
  return result;
}
