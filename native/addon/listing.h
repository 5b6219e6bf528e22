/* Directories listed with statx of every entry: the hot path of every capture. */
#ifndef SAVEPOINT_LISTING_H
#define SAVEPOINT_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "napi-util.h"
#include "resolve.h"

/* Zero at first, but for what the caller knows. */
struct listing {
  struct bytes_view known, spans; /* records of former listings, and where those of each directory lie in them */
  uint8_t *out;                   /* one directory behind another: the caller's to free */
  size_t length, room;
  /* scratch, reused from directory to directory */
  uint8_t *dents;
  char *names;
  size_t names_length, names_room;
  struct listed *entries;
  size_t count, entries_room;
  /* whether somebody serves the filesystem that was asked about last */
  uint64_t device;
  bool has_asked, is_served;
};

/* False without memory. listing_end() frees the scratch in any case. */
bool listing_begin(struct listing *listing);
/* Adds the directory at `path`, which is the one at `index` of `spans`; what is wrong with it stands in `out`. ENOMEM, or 0. */
int listing_add(struct listing *listing, struct resolver *resolver, size_t index, const char *path, size_t length);
void listing_end(struct listing *listing);

#endif
