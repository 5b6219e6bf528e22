/* By the inode, which is the same for all of them. See names.h. */
#include "names.h"

#include "frames.h"
#include "times.h"

static struct times named;

static bool has_several(const struct place *place) {
  return place->known && place->exists && !S_ISDIR(place->stat.st_mode) && place->stat.st_nlink > 1;
}

void names_note(const struct place *place, bool gets_name) {
  uint64_t inode[] = {place->stat.st_dev, place->stat.st_ino};
  if (has_several(place) || (gets_name && place->known && place->exists)) times_set(&named, inode, sizeof inode, realtime_ns());
}

uint64_t names_at(const struct place *place) { return has_several(place) ? names_once_at(place) : 0; }

uint64_t names_once_at(const struct place *place) {
  uint64_t inode[] = {place->stat.st_dev, place->stat.st_ino};
  return place->known && place->exists ? times_at(&named, inode, sizeof inode) : 0;
}
