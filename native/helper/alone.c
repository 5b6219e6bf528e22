/* By the path and the process. See alone.h. */
#include "alone.h"

#include <string.h>

#include "frames.h"
#include "times.h"

static struct times made;

static const void *key_of(const struct place *place, pid_t pid, size_t *length) {
  static char key[sizeof pid + PATH_ROOM];
  memcpy(key, &pid, sizeof pid);
  memcpy(key + sizeof pid, place->path, place->length);
  *length = sizeof pid + place->length;
  return key;
}

void alone_note(const struct place *place, pid_t pid) {
  size_t length;
  const void *key = key_of(place, pid, &length);
  times_set(&made, key, length, realtime_ns());
}

bool alone_made(const struct place *place, pid_t pid) {
  size_t length;
  const void *key = key_of(place, pid, &length);
  return place->known && times_at(&made, key, length) != 0;
}
