/* What both ways of watching share: which paths count, and the frames. See watch.h. */
#define _GNU_SOURCE
#include "watch.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "processes.h"

static const struct watching *watched;
static struct stream *stream;
static bool is_open, by_fanotify;
/* Told last: a file that is written piece by piece is one line, not hundreds. */
static struct {
  enum path_op op;
  pid_t pid;
  char path[WATCH_PATH_ROOM];
} last;

static int compare(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

int watch_open(const struct watching *watching, struct stream *out) {
  watched = watching;
  stream = out;
  qsort(watching->ignored, watching->ignored_count, sizeof *watching->ignored, compare);
  int fd = fanotify_watch_open();
  by_fanotify = fd >= 0;
  if (!by_fanotify) fd = inotify_watch_open();
  is_open = fd >= 0;
  return fd;
}

void watch_read(void) {
  if (!is_open) return;
  if (by_fanotify) fanotify_watch_read();
  else inotify_watch_read();
  last.path[0] = 0;
}

const char *watch_root(void) { return watched->path; }

static bool is_listed(const char *path) {
  return bsearch(&path, watched->ignored, watched->ignored_count, sizeof *watched->ignored, compare) != NULL;
}

bool watch_ignores(const char *path, bool above) {
  if (watched->ignored_count == 0) return false;
  if (is_listed(path)) return true;
  char part[WATCH_PATH_ROOM];
  size_t root = strlen(watched->path), length = strlen(path);
  if (!above || length >= sizeof part) return false;
  memcpy(part, path, length + 1);
  for (char *slash = strrchr(part, '/'); slash != NULL && (size_t)(slash - part) > root; slash = strrchr(part, '/')) {
    *slash = 0;
    if (is_listed(part)) return true;
  }
  return false;
}

void watch_tell(enum path_op op, const char *path, const char *to, bool directory, pid_t pid) {
  static struct frame frame;
  if (op == OP_SEEN && last.op == op && last.pid == pid && strcmp(last.path, path) == 0) return;
  last.op = op;
  last.pid = pid;
  strncpy(last.path, path, sizeof last.path - 1);
  frame_begin(&frame, FRAME_PATH, (uint16_t)op, (uint32_t)pid);
  frame_flag(&frame, FLAG_PAST);
  /* What went was there, and what came was not. */
  if (op == OP_DELETE || op == OP_SEEN || op == OP_ATTRIBUTES) frame_flag(&frame, FLAG_EXISTS);
  if (directory) frame_flag(&frame, FLAG_DIRECTORY);
  frame_number(&frame, FIELD_EXEC, pid == 0 ? 0 : process_exec(pid));
  frame_bytes(&frame, FIELD_PATH, path, strlen(path));
  if (to != NULL) frame_bytes(&frame, FIELD_TO, to, strlen(to));
  stream_put(stream, &frame);
}

void watch_tell_lost(enum lost_reason reason) {
  static struct frame frame;
  frame_begin(&frame, FRAME_LOST, 0, 0);
  frame_flag(&frame, (uint8_t)reason);
  frame_number(&frame, FIELD_NUMBER, 1);
  stream_put(stream, &frame);
}
