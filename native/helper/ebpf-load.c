/* See ebpf-load.h. */
#define _GNU_SOURCE
#include "ebpf-load.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Functions that read memory are offered to programs under a license like this only. */
static const char EBPF_LICENSE[] = "Dual MIT/GPL";
static const char kernel_types[] = "/sys/kernel/btf/vmlinux";
enum { FIRST_READ = 8 * 1024 * 1024, LOG_ROOM = 256 * 1024 };

static int bpf(enum bpf_cmd command, union bpf_attr *attributes) {
  return (int)syscall(SYS_bpf, command, attributes, sizeof *attributes);
}

static uint8_t *read_all(const char *path, size_t *length) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  size_t room = FIRST_READ;
  uint8_t *bytes = fd < 0 ? NULL : malloc(room);
  *length = 0;
  for (ssize_t got; bytes != NULL && (got = read(fd, bytes + *length, room - *length)) > 0;) {
    *length += (size_t)got;
    if (*length < room) continue;
    uint8_t *more = realloc(bytes, room *= 2);
    if (more == NULL) free(bytes);
    bytes = more;
  }
  if (fd >= 0) close(fd);
  return bytes;
}

static bool create_map(int *fd, enum bpf_map_type type, uint32_t key, uint32_t value, uint32_t count, uint32_t flags) {
  union bpf_attr attributes;
  memset(&attributes, 0, sizeof attributes);
  attributes.map_type = type;
  attributes.key_size = key;
  attributes.value_size = value;
  attributes.max_entries = count;
  attributes.map_flags = flags;
  *fd = bpf(BPF_MAP_CREATE, &attributes);
  if (*fd >= 0) return true;
  if (errno == EPERM) return ebpf_fail("this needs root, or CAP_BPF and CAP_PERFMON");
  if (errno == ENOSYS) return ebpf_fail("this kernel has no eBPF");
  return ebpf_fail("a map could not be made in the kernel: %s", strerror(errno));
}

static uint32_t room_count(void) {
  long processors = sysconf(_SC_NPROCESSORS_CONF);
  return 2 * (uint32_t)(processors < 1 ? 1 : processors);
}

static bool create_maps(struct ebpf *ebpf) {
  const uint32_t index = sizeof(uint32_t);
  return create_map(&ebpf->settings_map, BPF_MAP_TYPE_ARRAY, index, sizeof(struct ebpf_settings), 1, BPF_F_MMAPABLE) &&
         create_map(&ebpf->processes_map, BPF_MAP_TYPE_HASH, index, sizeof(struct ebpf_process), EBPF_PROCESSES, 0) &&
         create_map(&ebpf->rooms_map, BPF_MAP_TYPE_ARRAY, index, sizeof(struct ebpf_room), room_count(), 0) &&
         create_map(&ebpf->ring_map, BPF_MAP_TYPE_RINGBUF, 0, 0, ebpf->ring_bytes, 0);
}

static int find(const char *name, void *context) {
  const struct ebpf *ebpf = context;
  if (strcmp(name, "settings") == 0) return ebpf->settings_map;
  if (strcmp(name, "processes") == 0) return ebpf->processes_map;
  if (strcmp(name, "rooms") == 0) return ebpf->rooms_map;
  return strcmp(name, "ring") == 0 ? ebpf->ring_map : -1;
}

static bool map_memory(struct ebpf *ebpf) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  void *settings = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, ebpf->settings_map, 0);
  void *read_to = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, ebpf->ring_map, 0);
  void *written = mmap(NULL, page + 2 * (size_t)ebpf->ring_bytes, PROT_READ, MAP_SHARED, ebpf->ring_map, (off_t)page);
  if (settings == MAP_FAILED || read_to == MAP_FAILED || written == MAP_FAILED)
    return ebpf_fail("the ring of events could not be mapped: %s", strerror(errno));
  ebpf->settings = settings;
  ebpf->settings->rooms = room_count();
  ebpf->read_to = read_to;
  ebpf->written_to = written;
  ebpf->ring = (const uint8_t *)written + page;
  return true;
}

/* The kernel's checker says why at the end of its log, before the summary of what it did. */
static void explain(union bpf_attr *attributes, const char *name) {
  int error = errno;
  char *log = calloc(1, LOG_ROOM);
  ebpf_fail("the kernel refuses the program for %s: %s", name, strerror(error));
  if (error == EPERM) ebpf_fail("this needs root, or CAP_BPF and CAP_PERFMON");
  if (log == NULL || error == EPERM) {
    free(log);
    return;
  }
  attributes->log_level = 1;
  attributes->log_buf = (uintptr_t)log;
  attributes->log_size = LOG_ROOM;
  int fd = bpf(BPF_PROG_LOAD, attributes);
  if (fd >= 0) close(fd);
  char *end = strstr(log, "\nprocessed ");
  if (end != NULL) *end = 0;
  char *line = strrchr(log, '\n');
  line = line == NULL ? log : line + 1;
  if (*line != 0) ebpf_fail("the kernel refuses the program for %s: %.200s", name, line);
  free(log);
}

static bool load_program(struct ebpf *ebpf, const struct btf *kernel, const struct program *program) {
  char name[128];
  snprintf(name, sizeof name, "btf_trace_%s", program->tracepoint);
  uint32_t type = btf_find(kernel, BTF_TYPEDEF, name, 0);
  if (type == 0) return ebpf_fail("this kernel has no tracepoint %s", program->tracepoint);
  union bpf_attr attributes;
  memset(&attributes, 0, sizeof attributes);
  attributes.prog_type = BPF_PROG_TYPE_TRACING;
  attributes.expected_attach_type = BPF_TRACE_RAW_TP;
  attributes.attach_btf_id = type;
  attributes.insns = (uintptr_t)program->instructions;
  attributes.insn_cnt = program->count;
  attributes.license = (uintptr_t)EBPF_LICENSE;
  int fd = bpf(BPF_PROG_LOAD, &attributes);
  if (fd >= 0) {
    ebpf->programs[ebpf->count++] = fd;
    return true;
  }
  explain(&attributes, program->tracepoint);
  return false;
}

static bool load_programs(struct ebpf *ebpf, struct object *object, const uint8_t *types, size_t length) {
  struct btf kernel;
  bool ok = btf_open(&kernel, types, length) && object_fit(object, &kernel, find, ebpf);
  for (int i = 0; ok && i < object->count; i++) ok = load_program(ebpf, &kernel, &object->programs[i]);
  btf_close(&kernel);
  return ok;
}

bool ebpf_load(struct ebpf *ebpf, uint32_t ring_bytes) {
  *ebpf = (struct ebpf){.settings_map = -1, .processes_map = -1, .rooms_map = -1, .ring_map = -1, .ring_bytes = ring_bytes};
  struct object object = {0};
  size_t length = 0;
  /* First what an ordinary user may not do: it is the reason that most hear, and it is found out in no time. */
  bool ok = create_maps(ebpf) && map_memory(ebpf);
  uint8_t *types = ok ? read_all(kernel_types, &length) : NULL;
  if (ok && types == NULL) ok = ebpf_fail("this kernel does not describe its types (%s)", kernel_types);
  ok = ok && object_open(&object) && load_programs(ebpf, &object, types, length);
  object_close(&object);
  free(types);
  if (!ok) ebpf_unload(ebpf);
  return ok;
}

bool ebpf_attach(struct ebpf *ebpf) {
  for (int i = 0; i < ebpf->count; i++) {
    union bpf_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.raw_tracepoint.prog_fd = (uint32_t)ebpf->programs[i];
    int fd = bpf(BPF_RAW_TRACEPOINT_OPEN, &attributes);
    ebpf->links[i] = fd < 0 ? 0 : fd;
    if (fd < 0) return ebpf_fail("the kernel does not let the programs begin: %s", strerror(errno));
  }
  return true;
}

void ebpf_unload(struct ebpf *ebpf) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  for (int i = 0; i < ebpf->count; i++) {
    if (ebpf->links[i] > 0) close(ebpf->links[i]);
    close(ebpf->programs[i]);
  }
  if (ebpf->settings != NULL) {
    munmap(ebpf->settings, page);
    munmap(ebpf->read_to, page);
    munmap((void *)(uintptr_t)ebpf->written_to, page + 2 * (size_t)ebpf->ring_bytes);
  }
  const int maps[] = {ebpf->settings_map, ebpf->processes_map, ebpf->rooms_map, ebpf->ring_map};
  for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
    if (maps[i] >= 0) close(maps[i]);
  *ebpf = (struct ebpf){.settings_map = -1, .processes_map = -1, .rooms_map = -1, .ring_map = -1};
}
