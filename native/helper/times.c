/* A table with open addressing, which doubles as it fills. See times.h. */
#include "times.h"

#include <stdlib.h>

enum { FIRST_SLOTS = 1 << 12, MOST_SLOTS = 1 << 22 };

static uint64_t hash_of(const uint8_t *key, size_t length) {
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < length; i++) hash = (hash ^ key[i]) * 1099511628211u;
  return hash ^ (hash >> 32);
}

static struct time_slot *find(struct time_slot *table, size_t count, uint64_t hash) {
  size_t i = hash & (count - 1);
  while (table[i].at_ns != 0 && table[i].hash != hash) i = (i + 1) & (count - 1);
  return &table[i];
}

/* Into another table, without what is older. */
static void rebuild(struct times *times, size_t count, uint64_t before_ns) {
  struct time_slot *table = calloc(count, sizeof *table);
  if (table == NULL) return;
  size_t left = 0;
  for (size_t i = 0; i < times->size; i++) {
    const struct time_slot *slot = &times->slots[i];
    if (slot->at_ns == 0 || slot->at_ns < before_ns) continue;
    *find(table, count, slot->hash) = *slot;
    left++;
  }
  free(times->slots);
  *times = (struct times){.slots = table, .size = count, .used = left};
}

void times_set(struct times *times, const void *key, size_t length, uint64_t at_ns) {
  if (times->used * 2 >= times->size && times->size < MOST_SLOTS) rebuild(times, times->size == 0 ? FIRST_SLOTS : times->size * 2, 0);
  if (times->size == 0) return;
  uint64_t hash = hash_of(key, length);
  struct time_slot *slot = find(times->slots, times->size, hash);
  if (slot->at_ns == 0) {
    /* With room for no more, it counts as never. */
    if (times->used * 2 >= times->size) return;
    slot->hash = hash;
    times->used++;
  }
  slot->at_ns = at_ns;
}

uint64_t times_at(const struct times *times, const void *key, size_t length) {
  return times->size == 0 ? 0 : find(times->slots, times->size, hash_of(key, length))->at_ns;
}

void times_forget(struct times *times, uint64_t before_ns) {
  if (times->used > 0) rebuild(times, times->size, before_ns);
}
