/* What the main loop tells the reader by itself. See supervise-state.h. */
#define _GNU_SOURCE
#include "supervise-state.h"

#include <sys/wait.h>

#include "holds.h"
#include "record.h"
#include "tree.h"
#include "watch.h"

/* MAX_LEFT: so many of the processes that go on are told one by one. */
enum { MAX_LEFT = 100 };

void tell_failure(struct state *state, int error) {
  frame_begin(state->frame, FRAME_FAILED, 0, 0);
  frame_number(state->frame, FIELD_NUMBER, (uint32_t)error);
  stream_put(state->stream, state->frame);
  stream_drain(state->stream);
}

void tell_hello(struct state *state) {
  frame_begin(state->frame, FRAME_HELLO, 0, (uint32_t)state->command);
  frame_long(state->frame, FIELD_TIME, realtime_ns());
  stream_put(state->stream, state->frame);
}

void tell_number(struct state *state, enum frame_type type, uint32_t number, struct unseen unseen) {
  frame_begin(state->frame, type, 0, 0);
  frame_number(state->frame, FIELD_NUMBER, number);
  if (unseen.count != 0) {
    frame_number(state->frame, FIELD_EXEC, unseen.count);
    frame_long(state->frame, FIELD_TIME, unseen.unknown ? 0 : unseen.since_ns);
  }
  stream_put(state->stream, state->frame);
}

static void put_status(struct state *state) {
  int status = state->status;
  if (WIFSIGNALED(status)) frame_number(state->frame, FIELD_SIGNAL, (uint32_t)WTERMSIG(status));
  else frame_number(state->frame, FIELD_CODE, (uint32_t)WEXITSTATUS(status));
}

/* What has lost its parents is our child now, whether it has executed anything or not. */
static void put_members(struct state *state) {
  pid_t left[MAX_LEFT];
  size_t count = tree_members(left, MAX_LEFT);
  frame_number(state->frame, FIELD_NUMBER, (uint32_t)count);
  frame_bytes(state->frame, FIELD_PIDS, left, (count < MAX_LEFT ? count : MAX_LEFT) * sizeof *left);
}

void tell_end(struct state *state) {
  if (state->driver->settle != NULL) state->driver->settle();
  watch_read();
  record_finish();
  frame_begin(state->frame, FRAME_END, 0, (uint32_t)state->command);
  put_status(state);
  put_members(state);
  stream_put(state->stream, state->frame);
  stream_drain(state->stream);
  /* Nobody takes snapshots for what goes on. */
  if (!holds_want_changes()) holds_give_up();
  state->ended = true;
}

void tell_left(struct state *state) {
  frame_begin(state->frame, FRAME_LEFT, 0, 0);
  put_members(state);
  stream_leave_to_next(state->stream, state->frame);
}

void tell_waiting(struct state *state) {
  pid_t left[MAX_LEFT];
  frame_begin(state->frame, FRAME_WAITS, 0, (uint32_t)state->command);
  put_status(state);
  frame_number(state->frame, FIELD_NUMBER, (uint32_t)tree_members(left, MAX_LEFT));
  stream_put(state->stream, state->frame);
  state->waits = true;
}

void tell_late(struct state *state) {
  for (uint32_t exec; (exec = holds_expire()) != 0;) {
    frame_begin(state->frame, FRAME_LATE, 0, 0);
    frame_number(state->frame, FIELD_EXEC, exec);
    stream_put(state->stream, state->frame);
  }
}
