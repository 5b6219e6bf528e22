/* One frame of the log of a recording. See looks.h. */
#include <string.h>

#include "looks.h"

enum { LENGTH_BYTES = 4, HEADER_BYTES = 16, FIELD_HEADER_BYTES = 5, MAX_FRAME_BYTES = 64 * 1024 };
/* `enum field_tag` of the helper. */
enum { FIELD_PATH = 11, FIELD_TO = 12, FIELD_NUMBER = 13, FIELD_MODE = 21, FIELD_STAT = 30 };

static uint32_t u32_at(const uint8_t *bytes) {
  uint32_t value;
  memcpy(&value, bytes, sizeof value);
  return value;
}

bool seen_frame_at(const struct bytes_view *log, size_t offset, struct seen_frame *frame) {
  if (offset > log->length || log->length - offset < LENGTH_BYTES) return false;
  const uint8_t *bytes = log->data + offset + LENGTH_BYTES;
  size_t length = u32_at(log->data + offset);
  if (length < HEADER_BYTES || length > MAX_FRAME_BYTES || log->length - offset - LENGTH_BYTES < length) return false;
  *frame = (struct seen_frame){.type = bytes[0], .end = offset + LENGTH_BYTES + length};
  memcpy(&frame->as, bytes + 2, sizeof frame->as);
  for (size_t at = HEADER_BYTES; length - at >= FIELD_HEADER_BYTES;) {
    const uint8_t *field = bytes + at + FIELD_HEADER_BYTES;
    size_t size = u32_at(bytes + at + 1);
    if (size > length - at - FIELD_HEADER_BYTES) return false;
    struct text_view text = {.bytes = (const char *)field, .length = size};
    switch (bytes[at]) {
      case FIELD_PATH: frame->path = text; break;
      case FIELD_TO: frame->target = text; break;
      case FIELD_NUMBER: frame->number = size == sizeof(uint32_t) ? u32_at(field) : 0; break;
      case FIELD_MODE: frame->has_acl = true; break;
      case FIELD_STAT: frame->stat = size == sizeof(struct logged_stat) ? field : NULL; break;
      default: break;
    }
    at += FIELD_HEADER_BYTES + size;
  }
  return true;
}
