/*
 * One piece of work of an ingest: reads entries, or a window of a large file, into memory of its own, and keeps the
 * contents there until somebody has said which of them are to be stored.
 */
#ifndef SAVEPOINT_JOB_H
#define SAVEPOINT_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blake3.h"
#include "chunk.h"
#include "status.h"

/* Memory that contents lie in. Those of the usual size are used again: fresh ones would be zeroed by the kernel each. */
struct segment {
  struct segment *next;
  size_t size;
  uint8_t bytes[];
};

struct job {
  struct job *next;
  uint32_t batch;
  int fd; /* the root of the paths, or the large file */

  uint8_t *paths; /* NUL-separated; NULL for a window */
  size_t paths_length;
  size_t room; /* how much the contents should need */
  uint64_t max_content;
  uint32_t retries;

  uint64_t position;
  bool last; /* the tail is a chunk, too */
  struct chunk_limits limits; /* maximum 0: the window is only hashed */
  struct blake3 hash; /* of everything before the window; afterwards with its chunks */

  int error; /* of the whole job: ENOMEM, or what reading the window met */
  size_t count;
  struct meta *metas;
  const uint8_t **contents; /* NULL: there is none to be stored */
  uint8_t *extra; /* link targets and xattrs, at the offsets that the metas name; the hash after a window */
  size_t extra_length;
  struct segment *segments;
  uint8_t *wanted; /* one byte per content */
};

/* Gives a segment of at least `size` bytes, or NULL. */
typedef struct segment *segment_source(void *context, size_t size);

/* Fills in the second half. The window of a file that ends too early has no hash. */
void job_read(struct job *job, segment_source *take, void *context);
/* All but the segments. */
void job_free(struct job *job);

#endif
