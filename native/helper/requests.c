/* What the reader asks while the run goes on. See supervise-state.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "before.h"
#include "holders.h"
#include "holds.h"
#include "keep.h"
#include "moves.h"
#include "processes.h"
#include "supervise-state.h"
#include "tree.h"
#include "watch.h"

/* REQUEST in src/tracers/frames.ts. */
enum request {
  REQUEST_BARRIER = 1,
  REQUEST_SIGNAL = 2,
  REQUEST_RELEASE = 3,
  REQUEST_FREEZE = 4, /* answered like a barrier */
  REQUEST_THAW = 5, /* likewise */
  REQUEST_STOP = 6, /* the number: for how many milliseconds they may tidy up */
  REQUEST_LOOK = 10,
  REQUEST_CAPTURED = 11,
  REQUEST_BEGUN = 12,
  REQUEST_WALKED = 13, /* the same as CAPTURED, and everything was looked at */
  REQUEST_KEEP_ALL = 15,
  REQUEST_LEAVE = 16,  /* after the end, answered by FRAME_LEFT: what goes on is no part of the run any more */
  REQUEST_FOLLOW = 14, /* by the next reader, after the end: what goes on is told until nothing does */
};

static void settle_without_reader(struct state *state) {
  state->reader_gone = true;
  stream_resume(state->stream);
  /* Nobody will ever say that what a change waits for is safe: then it must not be made. */
  if (holds_want_changes()) tree_end(0);
  else holds_give_up();
  tree_thaw();
  epoll_ctl(state->epoll, EPOLL_CTL_DEL, state->events, NULL);
}

static void answer(struct state *state, uint32_t kind, uint32_t number) {
  if (kind == REQUEST_RELEASE) holds_release(number);
  if (kind == REQUEST_BEGUN) {
    holds_end_changes();
    before_captured();
    keep_begun();
  }
  if (kind == REQUEST_KEEP_ALL) keep_all();
  if (kind == REQUEST_SIGNAL && !state->command_ended && state->command > 0) kill(state->command, (int)number);
  if (kind == REQUEST_LOOK) keep_look(number);
  if (kind == REQUEST_CAPTURED || kind == REQUEST_WALKED) {
    processes_lock();
    keep_captured(number, kind == REQUEST_WALKED);
    processes_unlock();
  }
  if (kind == REQUEST_FOLLOW) {
    state->follows = state->look_left = true;
    stream_resume(state->stream);
    stream_flush(state->stream);
  }
  if (kind == REQUEST_STOP) tree_end(number);
  if (kind == REQUEST_FREEZE) tree_freeze();
  if (kind == REQUEST_THAW) tree_thaw();
  bool is_leaving = kind == REQUEST_LEAVE && state->ended;
  if (kind != REQUEST_BARRIER && kind != REQUEST_LOOK && kind != REQUEST_FREEZE && kind != REQUEST_THAW && !is_leaving) return;
  if (state->driver->settle != NULL) state->driver->settle();
  watch_read();
  processes_lock();
  moves_settle_idle(state->stream, state->frame);
  processes_unlock();
  if (is_leaving) {
    tell_left(state);
    return;
  }
  tell_number(state, FRAME_BARRIER, number, (struct unseen){0});
  /* After the barrier: whoever was out of its call by then holds what it opened, or has closed it. */
  if (kind == REQUEST_LOOK) tell_number(state, FRAME_LOOKED, number, tell_holders(state->stream, state->frame));
  stream_flush(state->stream);
}

void answer_requests(struct state *state) {
  for (;;) {
    ssize_t got = recv(state->events, state->request + state->request_length, REQUEST_BYTES - state->request_length,
                       MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      settle_without_reader(state);
      return;
    }
    state->request_length += (size_t)got;
    if (state->request_length < REQUEST_BYTES) continue;
    state->request_length = 0;
    uint32_t kind, number;
    memcpy(&kind, state->request, sizeof kind);
    memcpy(&number, state->request + sizeof kind, sizeof number);
    answer(state, kind, number);
  }
}
