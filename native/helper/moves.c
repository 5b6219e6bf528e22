/* By the inode, which goes with what is moved. See moves.h. */
#define _GNU_SOURCE
#include "moves.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Of more at a time it is not found out: then they count as done. */
enum { MOVES = 64 };

struct move {
  pid_t tid, pid;
  int number; /* of the call */
  enum path_op op;
  uint32_t exec;
  dev_t device;
  ino_t inode;
  bool is_beaten; /* another one has moved it from there meanwhile */
  char from[PATH_ROOM], to[PATH_ROOM];
};

static struct move moves[MOVES];
static size_t count;

void moves_add(const struct call *call, enum path_op op, const struct place *from, const struct place *to) {
  if (count == MOVES || !from->known || !from->exists || !to->known) return;
  struct move *move = &moves[count++];
  move->tid = tid_of(call);
  move->pid = call->process->pid;
  move->number = call->notification->data.nr;
  move->op = op;
  move->exec = process_present(call->process);
  move->device = from->stat.st_dev;
  move->inode = from->stat.st_ino;
  move->is_beaten = false;
  memcpy(move->from, from->path, from->length);
  memcpy(move->to, to->path, to->length);
  move->from[from->length] = move->to[to->length] = 0;
}

static bool is_at(const struct move *move, const char *path) {
  struct stat stat;
  return lstat(path, &stat) == 0 && stat.st_ino == move->inode && stat.st_dev == move->device;
}

static void tell_undone(struct stream *stream, struct frame *frame, const struct move *move) {
  frame_begin(frame, FRAME_UNDONE, (uint16_t)move->op, (uint32_t)move->pid);
  frame_number(frame, FIELD_EXEC, move->exec);
  frame_bytes(frame, FIELD_PATH, move->from, strlen(move->from));
  frame_bytes(frame, FIELD_TO, move->to, strlen(move->to));
  stream_put(stream, frame);
}

/* What one has moved from there, nobody else has who was to. */
static void beat_others(const struct move *winner) {
  for (size_t i = 0; i < count; i++) {
    struct move *move = &moves[i];
    bool is_same = move->inode == winner->inode && move->device == winner->device && strcmp(move->from, winner->from) == 0;
    if (is_same && strcmp(move->to, winner->to) != 0) move->is_beaten = true;
  }
}

/* `is_over`: the call has returned. What is at neither place went on from the second one. */
static bool is_settled(struct stream *stream, struct frame *frame, const struct move *move, bool is_over) {
  if (is_at(move, move->to)) {
    beat_others(move);
    return true;
  }
  if (!is_over) return false;
  if (move->is_beaten || is_at(move, move->from)) tell_undone(stream, frame, move);
  return true;
}

/* Those that are where they should be: then it is known which others cannot be. */
static void settle_done(struct stream *stream, struct frame *frame) {
  for (size_t i = count; i-- > 0;)
    if (is_settled(stream, frame, &moves[i], false)) moves[i] = moves[--count];
}

void moves_settle(struct stream *stream, struct frame *frame, pid_t tid) {
  settle_done(stream, frame);
  for (size_t i = count; i-- > 0;)
    if (moves[i].tid == tid && is_settled(stream, frame, &moves[i], true)) moves[i] = moves[--count];
}

void moves_settle_process(struct stream *stream, struct frame *frame, pid_t pid) {
  settle_done(stream, frame);
  for (size_t i = count; i-- > 0;)
    if (moves[i].pid == pid && is_settled(stream, frame, &moves[i], true)) moves[i] = moves[--count];
}

/* One that runs may have left the call, or not. */
static bool has_left(const struct move *move) {
  char text[64];
  if (!read_text_file(move->tid, "syscall", text, sizeof text)) return true;
  return strncmp(text, "running", 7) != 0 && atoi(text) != move->number;
}

void moves_settle_idle(struct stream *stream, struct frame *frame) {
  settle_done(stream, frame);
  for (size_t i = count; i-- > 0;)
    if (has_left(&moves[i]) && is_settled(stream, frame, &moves[i], true)) moves[i] = moves[--count];
}
