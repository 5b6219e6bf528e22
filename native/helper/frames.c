/* The stream to Savepoint: frames wait in memory, bounded, and go out in few writes. See frames.h. */
#define _GNU_SOURCE
#include "frames.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { FIELD_HEADER_BYTES = 5, TYPE_AT = 4, FIRST_ROOM = 256 * 1024 };
/* Beyond this frames are dropped and counted: a reader that stands still must not stop what it watches. */
static const size_t max_waiting = 64 * 1024 * 1024;

struct stream {
  int fd, wake_fd;
  pthread_mutex_t lock;
  uint8_t *data;
  size_t from, length, room;
  uint32_t lost;
  bool awake;
  bool paused;
  size_t last; /* of what waits while it is paused, so much is still for the former reader */
  _Atomic bool broken, commands_only; /* set under the lock; any thread may look */
  _Atomic uint64_t told_ns;
};

uint64_t in_ns(struct timespec time) {
  /* Beyond 1677 and 2262 the nearest time that 64 bits have, as in the addon. */
  __extension__ __int128 ns = (__int128)time.tv_sec * 1000000000 + time.tv_nsec;
  return (uint64_t)(ns > INT64_MAX ? INT64_MAX : ns < INT64_MIN ? INT64_MIN : (int64_t)ns);
}

static uint64_t now_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return in_ns(now);
}

uint64_t monotonic_ns(void) { return now_ns(CLOCK_MONOTONIC); }

uint64_t realtime_ns(void) { return now_ns(CLOCK_REALTIME); }

static void put(struct frame *frame, const void *bytes, size_t length) {
  memcpy(frame->bytes + frame->length, bytes, length);
  frame->length += length;
}

void frame_begin(struct frame *frame, enum frame_type type, uint16_t op, uint32_t pid) {
  uint64_t now = monotonic_ns();
  uint8_t kind[2] = {(uint8_t)type, 0};
  frame->length = sizeof(uint32_t);
  put(frame, kind, sizeof kind);
  put(frame, &op, sizeof op);
  put(frame, &pid, sizeof pid);
  put(frame, &now, sizeof now);
}

void frame_time(struct frame *frame, uint64_t monotonic) { memcpy(frame->bytes + 12, &monotonic, sizeof monotonic); }

void frame_flag(struct frame *frame, uint8_t flags) { frame->bytes[5] |= flags; }

bool frame_bytes(struct frame *frame, enum field_tag tag, const void *bytes, size_t length) {
  if (length > FRAME_ROOM - FIELD_HEADER_BYTES - frame->length) return false;
  uint8_t small_tag = (uint8_t)tag;
  uint32_t small_length = (uint32_t)length;
  put(frame, &small_tag, sizeof small_tag);
  put(frame, &small_length, sizeof small_length);
  put(frame, bytes, length);
  return true;
}

void frame_number(struct frame *frame, enum field_tag tag, uint32_t number) {
  frame_bytes(frame, tag, &number, sizeof number);
}

void frame_long(struct frame *frame, enum field_tag tag, uint64_t number) {
  frame_bytes(frame, tag, &number, sizeof number);
}

struct stream *stream_open(int fd, int wake_fd) {
  struct stream *stream = calloc(1, sizeof *stream);
  if (stream == NULL) return NULL;
  stream->fd = fd;
  stream->wake_fd = wake_fd;
  pthread_mutex_init(&stream->lock, NULL);
  return stream;
}

static bool make_room(struct stream *stream, size_t more) {
  if (stream->from > 0 && stream->from + stream->length + more > stream->room) {
    memmove(stream->data, stream->data + stream->from, stream->length);
    stream->from = 0;
  }
  if (stream->length + more <= stream->room) return true;
  if (stream->length + more > max_waiting) return false;
  size_t room = stream->room == 0 ? FIRST_ROOM : stream->room;
  while (room < stream->length + more) room *= 2;
  uint8_t *data = realloc(stream->data, room);
  if (data == NULL) return false;
  stream->data = data;
  stream->room = room;
  return true;
}

void frame_finish(struct frame *frame) {
  uint32_t length = (uint32_t)(frame->length - sizeof length);
  memcpy(frame->bytes, &length, sizeof length);
}

static void append(struct stream *stream, struct frame *frame) {
  frame_finish(frame);
  memcpy(stream->data + stream->from + stream->length, frame->bytes, frame->length);
  stream->length += frame->length;
}

/* The frames that found no room are told before the next one that does. */
static void tell_lost(struct stream *stream) {
  static struct frame lost;
  frame_begin(&lost, FRAME_LOST, 0, 0);
  frame_flag(&lost, LOST_OVERFLOW);
  frame_number(&lost, FIELD_NUMBER, stream->lost);
  if (!make_room(stream, lost.length)) return;
  append(stream, &lost);
  stream->lost = 0;
}

static bool is_of_command(const struct frame *frame) {
  enum frame_type type = frame->bytes[TYPE_AT];
  return type == FRAME_EXEC || type == FRAME_EXIT || type == FRAME_UNDONE || type == FRAME_LOST;
}

/* Under the lock. */
static void add(struct stream *stream, struct frame *frame) {
  if (stream->broken) return;
  if (stream->lost > 0) tell_lost(stream);
  if (stream->lost == 0 && make_room(stream, frame->length)) append(stream, frame);
  else stream->lost++;
}

void stream_leave_to_next(struct stream *stream, struct frame *frame) {
  pthread_mutex_lock(&stream->lock);
  add(stream, frame);
  stream->commands_only = stream->paused = true;
  stream->last = stream->length;
  pthread_mutex_unlock(&stream->lock);
  stream_drain(stream);
}

bool stream_is_left(const struct stream *stream) { return stream->commands_only; }

void stream_resume(struct stream *stream) {
  pthread_mutex_lock(&stream->lock);
  stream->paused = false;
  pthread_mutex_unlock(&stream->lock);
}

void stream_put(struct stream *stream, struct frame *frame) {
  pthread_mutex_lock(&stream->lock);
  if (stream->commands_only && !is_of_command(frame)) {
    pthread_mutex_unlock(&stream->lock);
    return;
  }
  add(stream, frame);
  stream->told_ns = monotonic_ns();
  bool wake = !stream->awake && stream->wake_fd >= 0;
  stream->awake = true;
  pthread_mutex_unlock(&stream->lock);
  if (wake) eventfd_write(stream->wake_fd, 1);
}

bool stream_flush(struct stream *stream) {
  pthread_mutex_lock(&stream->lock);
  stream->awake = false;
  size_t due = stream->paused ? stream->last : stream->length;
  while (due > 0 && !stream->broken) {
    ssize_t sent = send(stream->fd, stream->data + stream->from, due, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (sent < 0) stream->broken = true;
    else {
      stream->from += (size_t)sent;
      stream->length -= (size_t)sent;
      due -= (size_t)sent;
    }
  }
  if (stream->broken) stream->length = due = 0;
  if (stream->length == 0) stream->from = 0;
  stream->last = due;
  bool done = due == 0;
  pthread_mutex_unlock(&stream->lock);
  return done;
}

void stream_drain(struct stream *stream) {
  while (!stream_flush(stream)) {
    struct pollfd waiting = {.fd = stream->fd, .events = POLLOUT};
    poll(&waiting, 1, -1);
  }
}

uint64_t stream_told_ns(const struct stream *stream) { return stream->told_ns; }

bool stream_is_broken(const struct stream *stream) { return stream->broken; }
