/* By the inode, which goes with the directory. See moves.h. */
#define _GNU_SOURCE
#include "moves.h"

#include <string.h>
#include <sys/stat.h>

/* Of more at a time it is not found out: then they count as done. */
enum { MOVES = 16 };

struct move {
  pid_t tid, pid;
  enum path_op op;
  uint32_t exec;
  dev_t device;
  ino_t inode;
  char from[PATH_ROOM], to[PATH_ROOM];
};

static struct move moves[MOVES];
static size_t count;

void moves_add(const struct call *call, enum path_op op, const struct place *from, const struct place *to) {
  bool is_directory = from->known && from->exists && S_ISDIR(from->stat.st_mode);
  if (count == MOVES || !is_directory || !to->known) return;
  struct move *move = &moves[count++];
  move->tid = tid_of(call);
  move->pid = call->process->pid;
  move->op = op;
  move->exec = process_present(call->process);
  move->device = from->stat.st_dev;
  move->inode = from->stat.st_ino;
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

/* `is_over`: the call has returned. What is at neither place went on from the second one. */
static bool is_settled(struct stream *stream, struct frame *frame, const struct move *move, bool is_over) {
  if (is_at(move, move->to)) return true;
  if (!is_over) return false;
  if (is_at(move, move->from)) tell_undone(stream, frame, move);
  return true;
}

void moves_settle(struct stream *stream, struct frame *frame, pid_t tid) {
  for (size_t i = count; i-- > 0;)
    if (is_settled(stream, frame, &moves[i], moves[i].tid == tid)) moves[i] = moves[--count];
}

void moves_settle_process(struct stream *stream, struct frame *frame, pid_t pid) {
  for (size_t i = count; i-- > 0;)
    if (moves[i].pid == pid && is_settled(stream, frame, &moves[i], true)) moves[i] = moves[--count];
}
