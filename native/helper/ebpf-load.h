/* Puts the compiled programs and their maps into the kernel, and lets them begin. Needs CAP_BPF and CAP_PERFMON, and BTF. */
#ifndef SAVEPOINT_EBPF_LOAD_H
#define SAVEPOINT_EBPF_LOAD_H

#include "../ebpf/event.h"
#include "ebpf-object.h"

struct ebpf {
  int settings_map, processes_map, rooms_map, ring_map;
  int programs[OBJECT_MAX_PROGRAMS], links[OBJECT_MAX_PROGRAMS], count;
  struct ebpf_settings *settings;
  /* The ring: where we have read to, where the programs have written to, and the bytes, mapped twice in a row. */
  unsigned long *read_to;
  const unsigned long *written_to;
  const uint8_t *ring;
  uint32_t ring_bytes;
};

/* Programs are loaded and not yet at work. `ring_bytes`: a power of two, at least a page. False: see ebpf_reason. */
bool ebpf_load(struct ebpf *ebpf, uint32_t ring_bytes);
bool ebpf_attach(struct ebpf *ebpf);
void ebpf_unload(struct ebpf *ebpf);

#endif
