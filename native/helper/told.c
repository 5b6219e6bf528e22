/* A table with open addressing, which doubles as it fills. See told.h. */
#include "told.h"

#include <stdlib.h>

enum { FIRST_SLOTS = 1 << 12, MOST_SLOTS = 1 << 22 };

struct slot {
  uint64_t hash, at_ns; /* 0: empty */
};
static struct slot *slots;
static size_t size, used;

static uint64_t hash_of(const char *path, size_t length) {
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < length; i++) hash = (hash ^ (uint8_t)path[i]) * 1099511628211u;
  return hash ^ (hash >> 32);
}

static struct slot *find(struct slot *table, size_t count, uint64_t hash) {
  size_t i = hash & (count - 1);
  while (table[i].at_ns != 0 && table[i].hash != hash) i = (i + 1) & (count - 1);
  return &table[i];
}

/* Into another table, without what is older. */
static void rebuild(size_t count, uint64_t before_ns) {
  struct slot *table = calloc(count, sizeof *table);
  if (table == NULL) return;
  size_t left = 0;
  for (size_t i = 0; i < size; i++) {
    if (slots[i].at_ns == 0 || slots[i].at_ns < before_ns) continue;
    *find(table, count, slots[i].hash) = slots[i];
    left++;
  }
  free(slots);
  slots = table;
  size = count;
  used = left;
}

void told_add(const char *path, size_t length, uint64_t at_ns) {
  if (used * 2 >= size && size < MOST_SLOTS) rebuild(size == 0 ? FIRST_SLOTS : size * 2, 0);
  if (size == 0) return;
  struct slot *slot = find(slots, size, hash_of(path, length));
  if (slot->at_ns == 0) {
    /* With room for no more, it counts as never told. */
    if (used * 2 >= size) return;
    slot->hash = hash_of(path, length);
    used++;
  }
  slot->at_ns = at_ns;
}

uint64_t told_at(const char *path, size_t length) {
  return size == 0 ? 0 : find(slots, size, hash_of(path, length))->at_ns;
}

void told_forget(uint64_t before_ns) {
  if (used > 0) rebuild(size, before_ns);
}
