/*
 * Threads that read, hash, and pack contents into blocks. A job is read by one of them and reported; when the verdict
 * comes back, its wanted contents join the block that some thread is filling. Blocks are reported when they are full.
 * Knows nothing of JavaScript.
 */
#ifndef SAVEPOINT_PIPELINE_H
#define SAVEPOINT_PIPELINE_H

#include <pthread.h>
#include <stdbool.h>

#include "block.h"
#include "job.h"

enum { MAX_THREADS = 16, MAX_PARAMETERS = 8, MAX_NICE = 19 };

enum event_kind { EVENT_READ, EVENT_BLOCK, EVENT_FLUSHED, EVENT_FAILED };

/* Belongs to whoever gets it, but for the job, which stays with the pipeline until its verdict or the stop. */
struct event {
  enum event_kind kind;
  const struct job *job;
  uint8_t *block;
  size_t block_length;
  int error;
};
void event_free(struct event *event);

struct pipeline_settings {
  uint32_t threads;
  uint32_t block_bytes; /* a block is finished when it holds so much */
  uint32_t nice;        /* by so much they stand back behind others */
  double worthwhile;    /* packed objects that are not smaller than this fraction stay as they are */
  struct zstd_parameter parameters[MAX_PARAMETERS];
  size_t parameter_count; /* 0: nothing is packed */
};

struct pipeline {
  struct pipeline_settings settings;
  void (*report)(void *context, struct event *event); /* from any thread; must not wait */
  void *context;

  pthread_mutex_t mutex;
  pthread_cond_t work;
  struct job *reads, **reads_end;
  struct job *stores, **stores_end;
  struct job *waiting; /* for a verdict */
  struct segment *spare;
  size_t spare_count;
  uint32_t flush; /* counts the flushes asked for */
  uint32_t to_flush; /* threads that have not flushed yet */
  bool stopping;
  pthread_t threads[MAX_THREADS];
  uint32_t started;
};

/* Returns 0 or an errno; EOPNOTSUPP when there is no zstd, or one that refuses the parameters. */
int pipeline_start(struct pipeline *pipeline);
/* Takes the job. */
void pipeline_read(struct pipeline *pipeline, struct job *job);
/* The verdict: one byte per content, or nothing at all. Returns EINVAL when no such job waits or the number is wrong. */
int pipeline_store(struct pipeline *pipeline, uint32_t batch, const uint8_t *wanted, size_t count);
/* Reports EVENT_FLUSHED when everything that was wanted by now has left in blocks. One at a time. */
void pipeline_flush(struct pipeline *pipeline);
/* Returns when no thread runs any more; what is queued is dropped. May be called twice. */
void pipeline_stop(struct pipeline *pipeline);

#endif
