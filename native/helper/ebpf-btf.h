/* BTF: the description of types that the kernel has of itself and that a compiled object has of what it uses. Only reading. */
#ifndef SAVEPOINT_EBPF_BTF_H
#define SAVEPOINT_EBPF_BTF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct btf {
  const uint8_t *types;
  const char *strings;
  uint32_t types_length, strings_length;
  uint32_t *offsets; /* of each type, by number; 0 is no type */
  uint32_t count;
};

enum btf_kind { BTF_ARRAY = 3, BTF_STRUCT = 4, BTF_UNION = 5, BTF_TYPEDEF = 8 };

/* Why the last call of ours failed, in words. */
bool ebpf_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *ebpf_reason(void);

/* `bytes` must stay as long as the result is used. */
bool btf_open(struct btf *btf, const uint8_t *bytes, size_t length);
void btf_close(struct btf *btf);
/* "" when there is none. */
const char *btf_text(const struct btf *btf, uint32_t offset);
const char *btf_name(const struct btf *btf, uint32_t type);
/* The next type of that kind and name after number `after`; 0: there is none. */
uint32_t btf_find(const struct btf *btf, enum btf_kind kind, const char *name, uint32_t after);

/* A way from a structure to a field: the names of its steps, and for a step into an array the index. */
enum { BTF_MAX_STEPS = 8 };
struct btf_way {
  const char *names[BTF_MAX_STEPS]; /* NULL: into an array */
  uint32_t indexes[BTF_MAX_STEPS];
  int length;
};

/* What the access text of a relocation ("0:2:1") means in the object's own types. `offset`: where the field lies there. */
bool btf_read_way(const struct btf *btf, uint32_t type, const char *text, struct btf_way *way, uint32_t *offset);
/* Where the same field lies in another description of the same structure; false when it has none. */
bool btf_follow_way(const struct btf *btf, uint32_t type, const struct btf_way *way, uint32_t *offset);

#endif
