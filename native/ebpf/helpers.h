/* What the kernel offers to programs like ours (linux/bpf.h, by number), and how fields of its structures are read. */
#ifndef SAVEPOINT_EBPF_HELPERS_H
#define SAVEPOINT_EBPF_HELPERS_H

#include <stdint.h>

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))

static void *(*const map_find)(void *map, const void *key) = (void *)1;
static long (*const map_set)(void *map, const void *key, const void *value, uint64_t flags) = (void *)2;
static long (*const map_remove)(void *map, const void *key) = (void *)3;
static uint64_t (*const monotonic_ns)(void) = (void *)5;
static uint32_t (*const current_cpu)(void) = (void *)8;
static long (*const read_user)(void *out, uint32_t size, const void *from) = (void *)112;
static long (*const read_kernel)(void *out, uint32_t size, const void *from) = (void *)113;
static long (*const read_kernel_text)(void *out, uint32_t size, const void *from) = (void *)115;
static uint64_t (*const ancestor_cgroup)(int level) = (void *)123;
static long (*const ring_put)(void *ring, void *data, uint64_t size, uint64_t flags) = (void *)130;
static uint64_t (*const ring_ask)(void *ring, uint64_t flags) = (void *)134;

enum { RING_FORCE_WAKEUP = 2, RING_AVAILABLE = 0 };

/* Field `source` of a structure, by a pointer that the kernel gave us or that was read before. */
#define FETCH(source)                                                                        \
  ({                                                                                         \
    __typeof__(source) fetched_ = 0;                                                         \
    read_kernel(&fetched_, sizeof fetched_, __builtin_preserve_access_index(&(source)));     \
    fetched_;                                                                                \
  })

/* The compiler must not conclude that a bound is needless: whoever checks the program needs to see it. */
#define KEEP(value) __asm__ volatile("" : "+r"(value))

#endif
