/*
 * What a recording (record.h) has seen: each path once, with the state that it had then, and each file whose content may be wanted
 * back, with where that is kept. Both go into a log in the spool as they come (RECORD in src/tracers/record-log.ts): what changes
 * something by a write of its own, which is there whatever happens to us then; looks, of which there are thousands, together. For one thread.
 */
#ifndef SAVEPOINT_SEEN_H
#define SAVEPOINT_SEEN_H

#include <stdbool.h>
#include <stdint.h>

#include "tracee.h"

/* SEEN in src/tracers/record-log.ts. */
enum seen_as {
  SEEN_READ = 1,
  SEEN_WRITTEN = 2,
  SEEN_LOOKED_AT = 4, /* whether it is there, and what it is */
  SEEN_LISTED = 8,    /* as a directory */
  SEEN_DELETED = 16,
  SEEN_EXECUTED = 32,
  SEEN_MOVED = 128,  /* a directory came here as a whole: all in it is new */
  SEEN_INHERITED = 256, /* the command began with it, open for writing: its output, say */
};

struct seen {
  struct seen *next;
  uint64_t hash;
  uint32_t number, version; /* the version: another one each time it was changed */
  uint16_t as;
  bool is_new; /* what is in it and has not been seen was not there before the recording: nor was it, or all in it has been seen */
  bool was_there;
  uint32_t checked; /* when it was last found to be the directory that it was */
  dev_t device;
  ino_t inode;
  size_t length;
  char path[];
};

/* A file that had its content before the recording, or something else that had several names. */
struct content {
  struct content *next;
  struct stat stat; /* as it was when it was seen first */
  int8_t group;     /* its rights then, where an access list has them; else -1 (acl-group.h) */
  bool kept, linked; /* linked: kept as another name of it, not as a copy */
  bool stamped;
  uint32_t number; /* in the spool */
};

/* NULL: not seen yet. */
struct seen *seen_find(const char *path, size_t length);
/*
 * Whether it lies below something that was not there before, or that is another directory by now: then it was not there before either,
 * whatever is there now. All that was in a directory has been seen when it is moved or deleted. `generation`: another one each time
 * that may have happened.
 */
bool seen_is_below_new(const char *path, size_t length, uint32_t generation);
/* Notes a path that was not seen yet; `was_there`: then with the state that `place` has. NULL without memory or room in the log. */
struct seen *seen_add(const struct place *place, bool was_there, uint16_t as);
/* Notes what else it is seen as. */
void seen_as(struct seen *seen, uint16_t as);

/* Saves the content that a file had before, if it had one and that is not safe yet. `is_going`: with its last name. */
void seen_save(const struct place *place, bool is_going);
/* Its times are set by the recording itself. */
void seen_stamp(const struct stat *stat);

/* What could not be told. */
void seen_lost(uint32_t count);
/* The last word of the log: without it the recording has not been seen to its end. */
void seen_finish(uint32_t ignored, uint32_t foreign);

#endif
