/* See ebpf-btf.h. The format is described in the kernel's documentation, "BPF Type Format". */
#define _GNU_SOURCE
#include "ebpf-btf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BTF_MAGIC = 0xeb9f, MAX_NESTING = 16, MAX_MODIFIERS = 32 };

struct header {
  uint16_t magic;
  uint8_t version, flags;
  uint32_t header_length, types_offset, types_length, strings_offset, strings_length;
};
struct type {
  uint32_t name, info, size_or_type;
};
struct member {
  uint32_t name, type, offset;
};
struct array {
  uint32_t element, index, count;
};

static char reason[512];

bool ebpf_fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(reason, sizeof reason, format, arguments);
  va_end(arguments);
  return false;
}

const char *ebpf_reason(void) { return reason; }

static uint32_t kind_of(const struct type *type) { return type->info >> 24 & 0x1f; }
static uint32_t count_of(const struct type *type) { return type->info & 0xffff; }
static bool has_bitfields(const struct type *type) { return type->info >> 31; }

static const struct type *type_at(const struct btf *btf, uint32_t number) {
  if (number == 0 || number >= btf->count) return NULL;
  return (const void *)(btf->types + btf->offsets[number]);
}

/* How many bytes follow a type; -1 for a kind that we do not know. */
static long extra_bytes(const struct type *type) {
  static const struct {
    int8_t fixed, each;
  } sizes[20] = {[1] = {4, 0},  [3] = {12, 0}, [4] = {0, 12}, [5] = {0, 12},  [6] = {0, 8},
                 [13] = {0, 8}, [14] = {4, 0}, [15] = {0, 12}, [17] = {4, 0}, [19] = {0, 12}};
  uint32_t kind = kind_of(type);
  if (kind == 0 || kind >= sizeof sizes / sizeof *sizes) return -1;
  return sizes[kind].fixed + (long)sizes[kind].each * count_of(type);
}

/* Two rounds: the first counts. */
static bool index_types(struct btf *btf) {
  for (int round = 0; round < 2; round++) {
    uint32_t count = 1;
    for (uint32_t at = 0; at < btf->types_length; count++) {
      const struct type *type = (const void *)(btf->types + at);
      if (btf->types_length - at < sizeof *type) return ebpf_fail("the description of types is cut");
      long extra = extra_bytes(type);
      if (extra < 0) return ebpf_fail("types of kind %u are newer than this program", kind_of(type));
      if (round == 1) btf->offsets[count] = at;
      if (btf->types_length - at - sizeof *type < (size_t)extra) return ebpf_fail("the description of types is cut");
      at += (uint32_t)(sizeof *type + (size_t)extra);
    }
    btf->count = count;
    if (round == 0) btf->offsets = calloc(count, sizeof *btf->offsets);
    if (btf->offsets == NULL) return ebpf_fail("there is no memory");
  }
  return true;
}

bool btf_open(struct btf *btf, const uint8_t *bytes, size_t length) {
  struct header header;
  *btf = (struct btf){0};
  if (length < sizeof header) return ebpf_fail("the description of types is empty");
  memcpy(&header, bytes, sizeof header);
  if (header.magic != BTF_MAGIC || header.version != 1) return ebpf_fail("the description of types has an unknown format");
  size_t room = length - header.header_length;
  if (header.header_length > length || header.types_offset > room || header.types_length > room - header.types_offset ||
      header.strings_offset > room || header.strings_length > room - header.strings_offset || header.strings_length == 0)
    return ebpf_fail("the description of types is cut");
  btf->types = bytes + header.header_length + header.types_offset;
  btf->types_length = header.types_length;
  btf->strings = (const char *)bytes + header.header_length + header.strings_offset;
  btf->strings_length = header.strings_length;
  if (btf->strings[btf->strings_length - 1] != 0) return ebpf_fail("the description of types is cut");
  return index_types(btf);
}

void btf_close(struct btf *btf) { free(btf->offsets); }

const char *btf_text(const struct btf *btf, uint32_t offset) {
  return offset < btf->strings_length ? btf->strings + offset : "";
}

const char *btf_name(const struct btf *btf, uint32_t number) {
  const struct type *type = type_at(btf, number);
  return type == NULL ? "" : btf_text(btf, type->name);
}

uint32_t btf_find(const struct btf *btf, enum btf_kind kind, const char *name, uint32_t after) {
  for (uint32_t number = after + 1; number < btf->count; number++) {
    const struct type *type = type_at(btf, number);
    if (kind_of(type) == (uint32_t)kind && strcmp(btf_text(btf, type->name), name) == 0) return number;
  }
  return 0;
}

/* Behind typedef, volatile, const, restrict and tags. */
static uint32_t plain(const struct btf *btf, uint32_t number) {
  for (int i = 0; i < MAX_MODIFIERS; i++) {
    const struct type *type = type_at(btf, number);
    if (type == NULL) return 0;
    uint32_t kind = kind_of(type);
    if ((kind < BTF_TYPEDEF || kind > 11) && kind != 18) return number;
    number = type->size_or_type;
  }
  return 0;
}

/* In bytes; 0 when it is of no use here. */
static uint32_t size_of(const struct btf *btf, uint32_t number) {
  const struct type *type = type_at(btf, plain(btf, number));
  if (type == NULL) return 0;
  if (kind_of(type) == 2) return sizeof(uint64_t);
  return kind_of(type) == BTF_ARRAY ? 0 : type->size_or_type;
}

static bool is_record(const struct type *type) {
  return type != NULL && (kind_of(type) == BTF_STRUCT || kind_of(type) == BTF_UNION);
}

/* A member's place in bytes; false for bit fields. */
static bool member_offset(const struct type *record, const struct member *member, uint32_t *offset) {
  uint32_t bits = has_bitfields(record) ? member->offset & 0xffffff : member->offset;
  *offset = bits / 8;
  return bits % 8 == 0 && !(has_bitfields(record) && member->offset >> 24 != 0);
}

/* Member `name` of a record, also inside its parts that have no name. */
static const struct member *find_member(const struct btf *btf, const struct type *record, const char *name, int nesting,
                                        uint32_t *offset) {
  const struct member *members = (const void *)(record + 1);
  for (uint32_t i = 0; i < count_of(record); i++) {
    const char *found = btf_text(btf, members[i].name);
    uint32_t before, inside = 0;
    if (strcmp(found, name) == 0) return member_offset(record, &members[i], offset) ? &members[i] : NULL;
    if (*found != 0 || nesting >= MAX_NESTING || !member_offset(record, &members[i], &before)) continue;
    const struct type *part = type_at(btf, plain(btf, members[i].type));
    const struct member *member = is_record(part) ? find_member(btf, part, name, nesting + 1, &inside) : NULL;
    if (member == NULL) continue;
    *offset = before + inside;
    return member;
  }
  return NULL;
}

static bool step_into_array(const struct btf *btf, uint32_t *type, uint32_t index, uint32_t *offset) {
  const struct type *array = type_at(btf, plain(btf, *type));
  if (array == NULL || kind_of(array) != BTF_ARRAY) return false;
  uint32_t element = ((const struct array *)(const void *)(array + 1))->element;
  *offset += index * size_of(btf, element);
  *type = element;
  return true;
}

bool btf_read_way(const struct btf *btf, uint32_t type, const char *text, struct btf_way *way, uint32_t *offset) {
  *way = (struct btf_way){0};
  *offset = 0;
  char *end;
  /* The first number counts whole structures. */
  if (strtoul(text, &end, 10) != 0) return ebpf_fail("the object reads behind a structure");
  while (*end == ':') {
    uint32_t index = (uint32_t)strtoul(end + 1, &end, 10), place;
    if (way->length == BTF_MAX_STEPS) return ebpf_fail("the object reads fields that lie too deep");
    const struct type *record = type_at(btf, plain(btf, type));
    if (is_record(record) && index < count_of(record)) {
      const struct member *member = (const struct member *)(const void *)(record + 1) + index;
      if (!member_offset(record, member, &place)) return ebpf_fail("the object reads bit fields");
      way->names[way->length++] = btf_text(btf, member->name);
      *offset += place;
      type = member->type;
    } else if (step_into_array(btf, &type, index, offset)) way->indexes[way->length++] = index;
    else return ebpf_fail("the object's description of its types is damaged");
  }
  return *end == 0 || ebpf_fail("the object's relocations are damaged");
}

bool btf_follow_way(const struct btf *btf, uint32_t type, const struct btf_way *way, uint32_t *offset) {
  *offset = 0;
  for (int i = 0; i < way->length; i++) {
    if (way->names[i] == NULL) {
      if (!step_into_array(btf, &type, way->indexes[i], offset)) return false;
      continue;
    }
    const struct type *record = type_at(btf, plain(btf, type));
    uint32_t place;
    const struct member *member = is_record(record) ? find_member(btf, record, way->names[i], 0, &place) : NULL;
    if (member == NULL) return false;
    *offset += place;
    type = member->type;
  }
  return true;
}
