#define _GNU_SOURCE
#include "job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "read.h"

/* Beside the largest content: what its xattrs can need. */
enum { XATTR_ROOM = 256 * 1024 };

static struct segment *add_segment(struct job *job, segment_source *take, void *context, size_t size) {
  struct segment *segment = take(context, size);
  if (segment == NULL) return NULL;
  segment->next = job->segments;
  job->segments = segment;
  return segment;
}

/* --- entries --- */

static bool is_content(const struct meta *meta) {
  return meta->error == 0 && S_ISREG(meta->mode) && (meta->flags & (FLAG_UNSTABLE | FLAG_TOO_BIG)) == 0;
}

static size_t extra_of(const struct meta *meta) {
  if (meta->error != 0) return 0;
  return (S_ISLNK(meta->mode) ? meta->content_length : 0) + meta->xattr_length;
}

/* Moves what few entries have out of the segment, whose offsets mean nothing to anybody else. */
static bool keep_extra(struct job *job, struct meta *meta, const uint8_t *out) {
  size_t needed = extra_of(meta), content = S_ISLNK(meta->mode) ? meta->content_length : 0;
  if (needed == 0) return true;
  uint8_t *grown = job->extra_length + needed > UINT32_MAX ? NULL : realloc(job->extra, job->extra_length + needed);
  if (grown == NULL) return false;
  job->extra = grown;
  memcpy(grown + job->extra_length, out + meta->content_offset, content);
  memcpy(grown + job->extra_length + content, out + meta->xattr_offset, meta->xattr_length);
  meta->content_offset = (uint32_t)job->extra_length;
  meta->xattr_offset = (uint32_t)(job->extra_length + content);
  job->extra_length += needed;
  return true;
}

static int read_paths(struct job *job, struct reader *reader, segment_source *take, void *context) {
  struct path_list list;
  const char *path;
  size_t length;
  path_list_init(&list, job->paths, job->paths_length);
  for (size_t room = job->room; path_list_next(&list, &path, &length); job->count++) {
    struct meta *meta = &job->metas[job->count];
    // The sizes that the walk saw were added up; what has grown since goes on in a segment that holds any file.
    while (reader->out == NULL || reader_read(reader, path, length, meta) == READ_FULL) {
      struct segment *segment = add_segment(job, take, context, room);
      if (segment == NULL) return ENOMEM;
      reader->out = segment->bytes;
      reader->used = 0;
      reader->size = segment->size > UINT32_MAX ? UINT32_MAX : segment->size;
      room = 2 * job->max_content + XATTR_ROOM;
    }
    job->contents[job->count] = is_content(meta) ? reader->out + meta->content_offset : NULL;
    if (!keep_extra(job, meta, reader->out)) return ENOMEM;
  }
  return 0;
}

static void read_entries(struct job *job, segment_source *take, void *context) {
  struct reader reader;
  size_t count = count_paths(job->paths, job->paths_length);
  job->metas = malloc(count * sizeof *job->metas);
  job->contents = malloc(count * sizeof *job->contents);
  if (job->metas == NULL || job->contents == NULL || !reader_init(&reader, job->fd, job->max_content, job->retries)) {
    job->error = ENOMEM;
    return;
  }
  job->error = read_paths(job, &reader, take, context);
  reader_free(&reader);
}

/* --- a window of a large file --- */

static int fill(const struct job *job, uint8_t *out, size_t *filled) {
  for (*filled = 0; *filled < job->room;) {
    ssize_t got = pread(job->fd, out + *filled, job->room - *filled, (off_t)(job->position + *filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;
    *filled += (size_t)got;
  }
  return 0;
}

/* Names the chunks. Returns how many bytes they cover, or -1 without memory. */
static ssize_t cut(struct job *job, const uint8_t *bytes, size_t length) {
  size_t most = chunk_most(&job->limits, length), start = 0;
  uint32_t *ends = malloc(most * sizeof *ends);
  job->metas = calloc(most, sizeof *job->metas);
  job->contents = malloc(most * sizeof *job->contents);
  if (ends != NULL && job->metas != NULL && job->contents != NULL) {
    job->count = chunk_ends(bytes, 0, length, &job->limits, job->last, ends);
    for (size_t i = 0; i < job->count; start = ends[i++]) {
      job->contents[i] = bytes + start;
      job->metas[i].content_offset = (uint32_t)start;
      job->metas[i].content_length = (uint32_t)(ends[i] - start);
      blake3_hash(bytes + start, ends[i] - start, job->metas[i].id);
    }
  } else {
    start = SIZE_MAX;
  }
  free(ends);
  return (ssize_t)start;
}

static void read_window(struct job *job, segment_source *take, void *context) {
  size_t filled = 0;
  struct segment *segment = add_segment(job, take, context, job->room);
  job->error = segment == NULL ? ENOMEM : fill(job, segment->bytes, &filled);
  if (job->error != 0 || filled < job->room) return;
  ssize_t covered = job->limits.maximum == 0 ? (ssize_t)filled : cut(job, segment->bytes, filled);
  job->extra = malloc(sizeof job->hash);
  if (covered < 0 || job->extra == NULL) {
    job->error = ENOMEM;
    return;
  }
  blake3_update(&job->hash, segment->bytes, (size_t)covered);
  memcpy(job->extra, &job->hash, sizeof job->hash);
  job->extra_length = sizeof job->hash;
}

void job_read(struct job *job, segment_source *take, void *context) {
  if (job->paths != NULL) read_entries(job, take, context);
  else read_window(job, take, context);
}

void job_free(struct job *job) {
  free(job->paths);
  free(job->metas);
  free(job->contents);
  free(job->extra);
  free(job->wanted);
  free(job);
}
