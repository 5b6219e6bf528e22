/* When something last happened to each of very many things: by hashes of what they are called. For one thread at a time. */
#ifndef SAVEPOINT_TIMES_H
#define SAVEPOINT_TIMES_H

#include <stddef.h>
#include <stdint.h>

struct time_slot {
  uint64_t hash, at_ns; /* 0: empty */
};
/* Begins as all zeros. */
struct times {
  struct time_slot *slots;
  size_t size, used;
};

void times_set(struct times *times, const void *key, size_t length, uint64_t at_ns);
/* 0: never, or that is not known any more. */
uint64_t times_at(const struct times *times, const void *key, size_t length);
/* What was before that is not asked for again. */
void times_forget(struct times *times, uint64_t before_ns);

#endif
