/*
 * The raw Snappy format, which the blobs of a bundle are compressed with: elements, each a literal or a copy of what came before.
 * The length of the whole, which stands before them, is the caller's business.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "addon.h"
#include "napi-util.h"

/* Copies reach back at most to the beginning of their part: a reader needs to remember no more. */
enum { PART = 64 * 1024, HASH_BITS = 14, MIN_MATCH = 4, MARGIN = 16, MAX_COPY = 64 };
enum { INPUT_ROOM = 256 * 1024, WINDOW = 4 * 1024 * 1024, HISTORY = 1024 * 1024 };

static uint32_t load32(const uint8_t *at) {
  uint32_t value;
  memcpy(&value, at, sizeof value);
  return value;
}

static uint8_t *put_literal(uint8_t *out, const uint8_t *from, size_t length) {
  if (length == 0) return out;
  size_t coded = length - 1;
  if (coded < 60) *out++ = (uint8_t)(coded << 2);
  else if (coded < 256) {
    *out++ = 60 << 2;
    *out++ = (uint8_t)coded;
  } else {
    *out++ = 61 << 2;
    *out++ = (uint8_t)coded;
    *out++ = (uint8_t)(coded >> 8);
  }
  memcpy(out, from, length);
  return out + length;
}

static uint8_t *put_copy(uint8_t *out, size_t offset, size_t length) {
  while (length > 0) {
    /* No copy is shorter than four bytes. */
    size_t part = length <= MAX_COPY ? length : length < MAX_COPY + MIN_MATCH ? MAX_COPY - MIN_MATCH : MAX_COPY;
    *out++ = (uint8_t)((part - 1) << 2 | 2);
    *out++ = (uint8_t)offset;
    *out++ = (uint8_t)(offset >> 8);
    length -= part;
  }
  return out;
}

static uint8_t *compress_part(const uint8_t *in, size_t length, uint8_t *out) {
  uint16_t table[1 << HASH_BITS];
  memset(table, 0, sizeof table);
  size_t at = 1, literal = 0, misses = 32;
  while (at + MARGIN < length) {
    uint32_t here = load32(in + at);
    uint32_t slot = here * 0x1e35a7bdu >> (32 - HASH_BITS);
    size_t candidate = table[slot];
    table[slot] = (uint16_t)at;
    if (load32(in + candidate) != here || candidate >= at) {
      /* What does not repeat is gone through in longer and longer steps. */
      at += misses++ >> 5;
      continue;
    }
    misses = 32;
    size_t match = MIN_MATCH;
    while (at + match < length && in[candidate + match] == in[at + match]) match++;
    out = put_literal(out, in + literal, at - literal);
    out = put_copy(out, at - candidate, match);
    at += match;
    literal = at;
  }
  return put_literal(out, in + literal, length - literal);
}

/* A literal of 61 bytes or more has two bytes before it, of 257 or more three; the shortest copy saves only one of them. */
static size_t most_bytes(size_t length) { return length + length / 64 + (length / PART + 1) * 8; }

/* Into a buffer of the caller's: one of our own for each call would not be felt by the collector of garbage. */
napi_value addon_snappy_compress(napi_env env, napi_callback_info info) {
  napi_value arguments[2];
  struct bytes_view in, out;
  if (!get_arguments(env, info, 2, arguments) || !get_buffer(env, arguments[0], &in) || !get_buffer(env, arguments[1], &out)) return NULL;
  if (out.length < most_bytes(in.length)) {
    throw_errno(env, EINVAL, "snappyCompress", NULL, 0);
    return NULL;
  }
  uint8_t *end = out.data;
  for (size_t at = 0; at < in.length; at += PART) {
    end = compress_part(in.data + at, in.length - at < PART ? in.length - at : PART, end);
  }
  return make_number(env, (double)(end - out.data));
}

/* Where elements come from, and where what they say goes to: memory, or files (`fd` is not negative). */
struct source {
  int fd;
  uint64_t offset, left; /* of the file, not read yet */
  uint8_t *bytes;
  size_t at, length;
};
struct sink {
  int fd;
  uint64_t written, room; /* to the file; bytes that may still come */
  uint8_t *bytes;
  size_t length, capacity;
};

static bool need(struct source *source, size_t count) {
  while (source->length - source->at < count) {
    if (source->left == 0) return false;
    memmove(source->bytes, source->bytes + source->at, source->length - source->at);
    source->length -= source->at;
    source->at = 0;
    size_t part = INPUT_ROOM - source->length;
    if (part > source->left) part = (size_t)source->left;
    ssize_t got = pread(source->fd, source->bytes + source->length, part, (off_t)source->offset);
    if (got <= 0) return false;
    source->length += (size_t)got;
    source->offset += (uint64_t)got;
    source->left -= (uint64_t)got;
  }
  return true;
}

static bool flush(struct sink *sink, size_t keep) {
  size_t part = sink->length > keep ? sink->length - keep : 0;
  for (size_t done = 0; done < part;) {
    ssize_t wrote = pwrite(sink->fd, sink->bytes + done, part - done, (off_t)(sink->written + done));
    if (wrote <= 0) return false;
    done += (size_t)wrote;
  }
  sink->written += part;
  memmove(sink->bytes, sink->bytes + part, sink->length - part);
  sink->length -= part;
  return true;
}

static bool give(struct sink *sink, size_t count) {
  if (count > sink->room) return false;
  sink->room -= count;
  return sink->length + count <= sink->capacity || (sink->fd >= 0 && flush(sink, HISTORY) && sink->length + count <= sink->capacity);
}

static bool take_literal(struct source *source, struct sink *sink, uint64_t length) {
  while (length > 0) {
    if (!need(source, 1)) return false;
    size_t part = source->length - source->at;
    if (part > length) part = (size_t)length;
    if (part > INPUT_ROOM) part = INPUT_ROOM;
    if (!give(sink, part)) return false;
    memcpy(sink->bytes + sink->length, source->bytes + source->at, part);
    sink->length += part;
    source->at += part;
    length -= part;
  }
  return true;
}

static bool take_copy(struct sink *sink, uint64_t offset, size_t length) {
  if (offset == 0 || offset > sink->written + sink->length || !give(sink, length)) return false;
  if (offset >= length && offset <= sink->length) {
    memcpy(sink->bytes + sink->length, sink->bytes + sink->length - offset, length);
    sink->length += length;
    return true;
  }
  for (size_t i = 0; i < length; i++) {
    uint8_t byte;
    /* From farther back than we remember: other writers may. */
    if (offset > sink->length) {
      if (pread(sink->fd, &byte, 1, (off_t)(sink->written + sink->length - offset)) != 1) return false;
    } else byte = sink->bytes[sink->length - offset];
    sink->bytes[sink->length++] = byte;
  }
  return true;
}

static uint64_t number(const uint8_t *bytes, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; i++) value |= (uint64_t)bytes[i] << (8 * i);
  return value;
}

/* Whether the elements are sound, and say exactly as much as there is room for. */
static bool decode(struct source *source, struct sink *sink) {
  while (need(source, 1)) {
    uint8_t tag = source->bytes[source->at++];
    size_t extra = (tag & 3) == 0 ? (tag >> 2 < 60 ? 0 : (size_t)(tag >> 2) - 59) : (tag & 3) == 3 ? 4 : tag & 3;
    if (!need(source, extra)) return false;
    const uint8_t *more = source->bytes + source->at;
    source->at += extra;
    bool is_sound;
    if ((tag & 3) == 0) is_sound = take_literal(source, sink, (extra == 0 ? tag >> 2 : number(more, extra)) + 1);
    else if ((tag & 3) == 1) is_sound = take_copy(sink, (uint64_t)(tag >> 5) << 8 | more[0], (tag >> 2 & 7) + 4);
    else is_sound = take_copy(sink, number(more, extra), (size_t)(tag >> 2) + 1);
    if (!is_sound) return false;
  }
  return source->left == 0 && source->at == source->length && sink->room == 0;
}

napi_value addon_snappy_uncompress(napi_env env, napi_callback_info info) {
  napi_value arguments[2];
  struct bytes_view in, out;
  if (!get_arguments(env, info, 2, arguments) || !get_buffer(env, arguments[0], &in) || !get_buffer(env, arguments[1], &out)) return NULL;
  struct source source = {.fd = -1, .bytes = in.data, .length = in.length};
  struct sink sink = {.fd = -1, .room = out.length, .capacity = out.length, .bytes = out.data};
  if (decode(&source, &sink)) return make_undefined(env);
  throw_errno(env, EBADMSG, "snappyUncompress", NULL, 0);
  return NULL;
}

napi_value addon_snappy_expand(napi_env env, napi_callback_info info) {
  napi_value arguments[5];
  int from, to;
  uint64_t offset, length, expected;
  if (!get_arguments(env, info, 5, arguments) || !get_int(env, arguments[0], &from) || !get_size(env, arguments[1], &offset) ||
      !get_size(env, arguments[2], &length) || !get_int(env, arguments[3], &to) || !get_size(env, arguments[4], &expected)) {
    return NULL;
  }
  struct source source = {.fd = from, .offset = offset, .left = length, .bytes = malloc(INPUT_ROOM)};
  struct sink sink = {.fd = to, .room = expected, .capacity = WINDOW, .bytes = malloc(WINDOW)};
  int error = 0;
  if (source.bytes == NULL || sink.bytes == NULL) error = ENOMEM;
  else {
    errno = 0;
    if (!decode(&source, &sink) || !flush(&sink, 0)) error = errno == 0 ? EBADMSG : errno;
  }
  free(source.bytes);
  free(sink.bytes);
  if (error == 0) return make_undefined(env);
  throw_errno(env, error, "snappyExpand", NULL, 0);
  return NULL;
}
