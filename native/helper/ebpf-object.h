/*
 * The compiled programs (native/ebpf/exec.bpf.o), taken apart and made to fit this kernel. Of the format of such objects
 * only what ours uses is understood; anything else is an error, never a guess.
 */
#ifndef SAVEPOINT_EBPF_OBJECT_H
#define SAVEPOINT_EBPF_OBJECT_H

#include "ebpf-btf.h"

enum { OBJECT_MAX_PROGRAMS = 8 };

struct instruction {
  uint8_t code, registers;
  int16_t offset;
  int32_t immediate;
};

struct program {
  const char *tracepoint; /* from its section's name, "tp_btf/…" */
  struct instruction *instructions;
  uint32_t count;
};

struct object {
  uint8_t *bytes;
  size_t length;
  struct program programs[OBJECT_MAX_PROGRAMS];
  int count;
};

/* The descriptor of a map by its name; -1 when there is no such map. */
typedef int find_map(const char *name, void *context);

/* Opens a copy of the object that is part of this program. */
bool object_open(struct object *object);
/* Writes the maps and the places of fields in this kernel's structures into the programs. */
bool object_fit(struct object *object, const struct btf *kernel, find_map *find, void *context);
void object_close(struct object *object);

#endif
