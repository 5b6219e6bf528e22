#define _GNU_SOURCE
#include "pipeline.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* Segments of at least this size, so that most can be used again, and how many of them wait for that. */
enum { SEGMENT_BYTES = 2 * 1024 * 1024, MAX_SPARE = 8 };

struct worker {
  struct pipeline *pipeline;
  struct zstd *zstd;
  struct block_builder builder;
  uint32_t flushed;
};

void event_free(struct event *event) {
  free(event->block);
  free(event);
}

/* --- memory --- */

static struct segment *take_segment(void *context, size_t size) {
  struct pipeline *pipeline = context;
  struct segment *segment = NULL;
  if (size <= SEGMENT_BYTES) {
    size = SEGMENT_BYTES;
    pthread_mutex_lock(&pipeline->mutex);
    segment = pipeline->spare;
    if (segment != NULL) {
      pipeline->spare = segment->next;
      pipeline->spare_count--;
    }
    pthread_mutex_unlock(&pipeline->mutex);
  }
  if (segment == NULL) {
    segment = malloc(sizeof *segment + size);
    if (segment != NULL) segment->size = size;
  }
  return segment;
}

static void give_segments(struct pipeline *pipeline, struct segment *segment) {
  for (struct segment *next; segment != NULL; segment = next) {
    next = segment->next;
    pthread_mutex_lock(&pipeline->mutex);
    bool keep = segment->size == SEGMENT_BYTES && pipeline->spare_count < MAX_SPARE;
    if (keep) {
      segment->next = pipeline->spare;
      pipeline->spare = segment;
      pipeline->spare_count++;
    }
    pthread_mutex_unlock(&pipeline->mutex);
    if (!keep) free(segment);
  }
}

static void drop_job(struct pipeline *pipeline, struct job *job) {
  give_segments(pipeline, job->segments);
  job_free(job);
}

static void drop_jobs(struct pipeline *pipeline, struct job *job) {
  for (struct job *next; job != NULL; job = next) {
    next = job->next;
    drop_job(pipeline, job);
  }
}

/* --- work --- */

/* Without memory for the event itself nobody would ever hear of it: the process cannot go on. */
static void report(struct pipeline *pipeline, struct event content) {
  struct event *event = malloc(sizeof *event);
  if (event == NULL) abort();
  *event = content;
  pipeline->report(pipeline->context, event);
}

static void finish_block(struct worker *worker) {
  if (worker->builder.count == 0) return;
  size_t length;
  uint8_t *block = block_finish(&worker->builder, worker->zstd, worker->pipeline->settings.worthwhile, &length);
  if (block != NULL) {
    report(worker->pipeline, (struct event){.kind = EVENT_BLOCK, .block = block, .block_length = length});
  } else {
    worker->builder.count = worker->builder.used = 0;
    report(worker->pipeline, (struct event){.kind = EVENT_FAILED, .error = ENOMEM});
  }
}

static void read_job(struct worker *worker, struct job *job) {
  struct pipeline *pipeline = worker->pipeline;
  job_read(job, take_segment, pipeline);
  pthread_mutex_lock(&pipeline->mutex);
  job->next = pipeline->waiting;
  pipeline->waiting = job;
  pthread_mutex_unlock(&pipeline->mutex);
  report(pipeline, (struct event){.kind = EVENT_READ, .job = job});
}

static void store_job(struct worker *worker, struct job *job) {
  struct pipeline *pipeline = worker->pipeline;
  for (size_t i = 0; i < job->count; i++) {
    const struct meta *meta = &job->metas[i];
    if (!job->wanted[i] || job->contents[i] == NULL) continue;
    if (!block_add(&worker->builder, meta->id, job->contents[i], meta->content_length)) {
      report(pipeline, (struct event){.kind = EVENT_FAILED, .error = ENOMEM});
      break;
    }
    if (worker->builder.used >= pipeline->settings.block_bytes) finish_block(worker);
  }
  drop_job(pipeline, job);
}

static void flush(struct worker *worker) {
  struct pipeline *pipeline = worker->pipeline;
  finish_block(worker);
  pthread_mutex_lock(&pipeline->mutex);
  bool was_last = --pipeline->to_flush == 0;
  pthread_mutex_unlock(&pipeline->mutex);
  if (was_last) report(pipeline, (struct event){.kind = EVENT_FLUSHED});
}

static struct job *take(struct job **first, struct job ***end) {
  struct job *job = *first;
  if (job != NULL && (*first = job->next) == NULL) *end = first;
  return job;
}

/* What is to be stored goes first: that frees memory. False: the thread is to end. */
static bool work(struct worker *worker) {
  struct pipeline *pipeline = worker->pipeline;
  struct job *store = NULL, *read = NULL;
  bool flushes = false;
  pthread_mutex_lock(&pipeline->mutex);
  for (; !pipeline->stopping; pthread_cond_wait(&pipeline->work, &pipeline->mutex)) {
    store = take(&pipeline->stores, &pipeline->stores_end);
    if (store == NULL) read = take(&pipeline->reads, &pipeline->reads_end);
    flushes = store == NULL && read == NULL && worker->flushed != pipeline->flush;
    if (store != NULL || read != NULL || flushes) break;
  }
  bool goes_on = !pipeline->stopping;
  if (flushes) worker->flushed = pipeline->flush;
  pthread_mutex_unlock(&pipeline->mutex);
  if (store != NULL) store_job(worker, store);
  if (read != NULL) read_job(worker, read);
  if (flushes) flush(worker);
  return goes_on;
}

static void *run(void *data) {
  struct worker *worker = data;
  pthread_setname_np(pthread_self(), "savepoint-pack");
  /* Of this thread alone, where there are threads in the kernel's sense. */
  if (worker->pipeline->settings.nice > 0) {
    int before = getpriority(PRIO_PROCESS, 0);
    setpriority(PRIO_PROCESS, 0, before + (int)worker->pipeline->settings.nice);
  }
  while (work(worker)) continue;
  zstd_free(worker->zstd);
  block_free(&worker->builder);
  free(worker);
  return NULL;
}

/* --- from outside --- */

static int start_thread(struct pipeline *pipeline) {
  const struct pipeline_settings *settings = &pipeline->settings;
  struct worker *worker = calloc(1, sizeof *worker);
  if (worker == NULL) return ENOMEM;
  worker->pipeline = pipeline;
  if (settings->parameter_count > 0) worker->zstd = zstd_new(settings->parameters, settings->parameter_count);
  int error = settings->parameter_count > 0 && worker->zstd == NULL ? EOPNOTSUPP : 0;
  if (error == 0) error = pthread_create(&pipeline->threads[pipeline->started], NULL, run, worker);
  if (error == 0) {
    pipeline->started++;
  } else {
    zstd_free(worker->zstd);
    free(worker);
  }
  return error;
}

int pipeline_start(struct pipeline *pipeline) {
  pthread_mutex_init(&pipeline->mutex, NULL);
  pthread_cond_init(&pipeline->work, NULL);
  pipeline->reads_end = &pipeline->reads;
  pipeline->stores_end = &pipeline->stores;
  // Signals are the main thread's business.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = 0;
  while (error == 0 && pipeline->started < pipeline->settings.threads) error = start_thread(pipeline);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (error != 0) pipeline_stop(pipeline);
  return error;
}

void pipeline_read(struct pipeline *pipeline, struct job *job) {
  pthread_mutex_lock(&pipeline->mutex);
  job->next = NULL;
  *pipeline->reads_end = job;
  pipeline->reads_end = &job->next;
  pthread_cond_signal(&pipeline->work);
  pthread_mutex_unlock(&pipeline->mutex);
}

static struct job *find_waiting(struct pipeline *pipeline, uint32_t batch, size_t count) {
  struct job **at = &pipeline->waiting;
  while (*at != NULL && (*at)->batch != batch) at = &(*at)->next;
  struct job *job = *at;
  if (job == NULL || (count > 0 && count != job->count)) return NULL;
  *at = job->next;
  job->next = NULL;
  return job;
}

int pipeline_store(struct pipeline *pipeline, uint32_t batch, const uint8_t *wanted, size_t count) {
  uint8_t *copy = malloc(count + 1);
  if (copy == NULL) return ENOMEM;
  if (count > 0) memcpy(copy, wanted, count);
  pthread_mutex_lock(&pipeline->mutex);
  struct job *job = find_waiting(pipeline, batch, count);
  bool stores = job != NULL && count > 0;
  if (stores) {
    job->wanted = copy;
    *pipeline->stores_end = job;
    pipeline->stores_end = &job->next;
    pthread_cond_signal(&pipeline->work);
  }
  pthread_mutex_unlock(&pipeline->mutex);
  if (stores) return 0;
  free(copy);
  if (job == NULL) return EINVAL;
  drop_job(pipeline, job);
  return 0;
}

void pipeline_flush(struct pipeline *pipeline) {
  pthread_mutex_lock(&pipeline->mutex);
  pipeline->flush++;
  pipeline->to_flush = pipeline->started;
  pthread_cond_broadcast(&pipeline->work);
  pthread_mutex_unlock(&pipeline->mutex);
}

void pipeline_stop(struct pipeline *pipeline) {
  pthread_mutex_lock(&pipeline->mutex);
  pipeline->stopping = true;
  pthread_cond_broadcast(&pipeline->work);
  pthread_mutex_unlock(&pipeline->mutex);
  for (; pipeline->started > 0; pipeline->started--) pthread_join(pipeline->threads[pipeline->started - 1], NULL);
  drop_jobs(pipeline, pipeline->reads);
  drop_jobs(pipeline, pipeline->stores);
  drop_jobs(pipeline, pipeline->waiting);
  pipeline->reads = pipeline->stores = pipeline->waiting = NULL;
  for (struct segment *next; pipeline->spare != NULL; pipeline->spare = next) {
    next = pipeline->spare->next;
    free(pipeline->spare);
  }
  pipeline->spare_count = 0;
}
