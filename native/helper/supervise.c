/* The helper's main loop. See supervise.h. */
#define _GNU_SOURCE
#include "supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "before.h"
#include "exits.h"
#include "frames.h"
#include "holders.h"
#include "holds.h"
#include "keep.h"
#include "processes.h"
#include "ptrace.h"
#include "record.h"
#include "spool.h"
#include "tree.h"
#include "watch.h"

/* MAX_LEFT: so many of the processes that go on are told one by one. */
enum { MAX_EVENTS = 256, REQUEST_BYTES = 8, MAX_LEFT = 100 };
/*
 * Frames that nobody waits for go out with some time between: each write wakes the reader. The time doubles as long as they keep
 * coming, since then what is done matters more than when it is known.
 */
static const uint64_t min_collect_ns = 5000000, max_collect_ns = 50000000;
/* How often is looked whether all that is being ended has gone. */
static const uint64_t look_ns = 20000000;

/* What the reader may ask: u32 kind, u32 number. REQUEST in src/tracers/frames.ts. */
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
};

struct state {
  int epoll, events, signals, wake, listener, failure, watched;
  int error; /* why the command could not be executed */
  pid_t command;
  struct stream *stream;
  struct frame *frame;
  const struct driver *driver;
  bool ptraces;            /* the ends of processes, at least, come by ptrace */
  bool behind;             /* there are children that were not waited for yet */
  bool reader_gone, ended, unfiltered;
  bool waits;              /* it has been told that the recording goes on after the command */
  bool command_ended;      /* so, by `status`; `ended` when it has been told */
  int status;
  uint8_t request[REQUEST_BYTES];
  size_t request_length;
  uint64_t flush_ns;   /* when to hand over what was collected; 0: there is nothing */
  uint64_t flushed_ns; /* when that was done last */
  uint64_t collect_ns; /* the time between */
};

static void watch(int epoll, int fd, uint32_t events, void *tag) {
  struct epoll_event event = {.events = events, .data.ptr = tag};
  epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

static void plan_flush(struct state *state) {
  bool goes_on = monotonic_ns() - state->flushed_ns < 2 * max_collect_ns;
  state->collect_ns = goes_on ? state->collect_ns * 2 : min_collect_ns;
  if (state->collect_ns > max_collect_ns) state->collect_ns = max_collect_ns;
  state->flush_ns = state->flushed_ns + state->collect_ns;
}

static void tell_failure(struct state *state, int error) {
  frame_begin(state->frame, FRAME_FAILED, 0, 0);
  frame_number(state->frame, FIELD_NUMBER, (uint32_t)error);
  stream_put(state->stream, state->frame);
  stream_drain(state->stream);
}

static void tell_hello(struct state *state) {
  frame_begin(state->frame, FRAME_HELLO, 0, (uint32_t)state->command);
  frame_long(state->frame, FIELD_TIME, realtime_ns());
  stream_put(state->stream, state->frame);
}

static void tell_number(struct state *state, enum frame_type type, uint32_t number, uint32_t unseen) {
  frame_begin(state->frame, type, 0, 0);
  frame_number(state->frame, FIELD_NUMBER, number);
  if (unseen != 0) frame_number(state->frame, FIELD_EXEC, unseen);
  stream_put(state->stream, state->frame);
}

/* Takes the ends of our children: of the command, and of what lost its parents; and all that ptrace tells. */
static void reap(struct state *state) {
  int child_status, count = 0;
  state->behind = true;
  /* Not without end: a storm of processes must not keep the reader's requests waiting. */
  while (count++ < MAX_EVENTS) {
    pid_t pid = waitpid(-1, &child_status, WNOHANG | (state->ptraces ? __WALL : 0));
    if (pid <= 0) {
      state->behind = false;
      return;
    }
    if (state->ptraces) ptrace_handle(pid, child_status);
    if (pid != state->command || WIFSTOPPED(child_status)) continue;
    state->status = child_status;
    state->command_ended = true;
  }
}

/* While all are being stopped, what ptrace tells is handled as ever: who was stopped before is not ours to continue. */
static struct state *supervised;
static void settle(void) { reap(supervised); }

static void answer_requests(struct state *state) {
  for (;;) {
    ssize_t got = recv(state->events, state->request + state->request_length, REQUEST_BYTES - state->request_length,
                       MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      state->reader_gone = true;
      /* Nobody will ever say that what a change waits for is safe: then it must not be made. */
      if (holds_want_changes()) tree_end(0);
      else holds_give_up();
      tree_thaw();
      epoll_ctl(state->epoll, EPOLL_CTL_DEL, state->events, NULL);
      return;
    }
    state->request_length += (size_t)got;
    if (state->request_length < REQUEST_BYTES) continue;
    state->request_length = 0;
    uint32_t kind, number;
    memcpy(&kind, state->request, sizeof kind);
    memcpy(&number, state->request + sizeof kind, sizeof number);
    if (kind == REQUEST_RELEASE) holds_release(number);
    if (kind == REQUEST_BEGUN) {
      holds_end_changes();
      before_captured();
    }
    if (kind == REQUEST_SIGNAL && !state->ended && state->command > 0) kill(state->command, (int)number);
    if (kind == REQUEST_LOOK) keep_look(number);
    if (kind == REQUEST_CAPTURED) keep_captured(number);
    if (kind == REQUEST_STOP) tree_end(number);
    if (kind == REQUEST_FREEZE) tree_freeze();
    if (kind == REQUEST_THAW) tree_thaw();
    if (kind != REQUEST_BARRIER && kind != REQUEST_LOOK && kind != REQUEST_FREEZE && kind != REQUEST_THAW) continue;
    if (state->driver->settle != NULL) state->driver->settle();
    if (state->watched >= 0) watch_read();
    tell_number(state, FRAME_BARRIER, number, 0);
    /* After the barrier: whoever was out of its call by then holds what it opened, or has closed it. */
    if (kind == REQUEST_LOOK) tell_number(state, FRAME_LOOKED, number, tell_holders(state->stream, state->frame));
    stream_flush(state->stream);
  }
}

static void pass_signals(struct state *state) {
  struct signalfd_siginfo signal;
  while (read(state->signals, &signal, sizeof signal) == (ssize_t)sizeof signal) {
    if (signal.ssi_signo == SIGCHLD || state->ended) continue;
    if (state->command > 0) kill(state->command, (int)signal.ssi_signo);
    else state->reader_gone = true; /* as good as */
  }
}

/* The command has stopped: our parent hears of it as if it were its own child, looks, and stops as well. */
static void pass_stop(const struct state *state) {
  siginfo_t stop = {0};
  if (state->ended || state->reader_gone || state->ptraces || tree_is_frozen()) return;
  if (waitid(P_PID, (id_t)state->command, &stop, WSTOPPED | WNOHANG) == 0 && stop.si_pid == state->command)
    kill(getppid(), SIGCHLD);
}

static void put_status(struct state *state) {
  int status = state->status;
  if (WIFSIGNALED(status)) frame_number(state->frame, FIELD_SIGNAL, (uint32_t)WTERMSIG(status));
  else frame_number(state->frame, FIELD_CODE, (uint32_t)WEXITSTATUS(status));
}

static void tell_end(struct state *state) {
  if (state->driver->settle != NULL) state->driver->settle();
  if (state->watched >= 0) watch_read();
  record_finish();
  /* What has lost its parents is our child now, whether it has executed anything or not. */
  pid_t left[MAX_LEFT];
  size_t count = tree_members(left, MAX_LEFT);
  frame_begin(state->frame, FRAME_END, 0, (uint32_t)state->command);
  put_status(state);
  frame_number(state->frame, FIELD_NUMBER, (uint32_t)count);
  frame_bytes(state->frame, FIELD_PIDS, left, (count < MAX_LEFT ? count : MAX_LEFT) * sizeof *left);
  stream_put(state->stream, state->frame);
  state->ended = true;
}

static void tell_waiting(struct state *state) {
  pid_t left[MAX_LEFT];
  frame_begin(state->frame, FRAME_WAITS, 0, (uint32_t)state->command);
  put_status(state);
  frame_number(state->frame, FIELD_NUMBER, (uint32_t)tree_members(left, MAX_LEFT));
  stream_put(state->stream, state->frame);
  state->waits = true;
}

/* Handles what there is, after waiting for at most `timeout` ms; returns whether there was anything. */
static bool handle(struct state *state, int timeout) {
  struct epoll_event events[MAX_EVENTS];
  int count = epoll_wait(state->epoll, events, MAX_EVENTS, timeout);
  for (int i = 0; i < count; i++) {
    void *tag = events[i].data.ptr;
    uint64_t number;
    if (tag == &state->wake) {
      if (read(state->wake, &number, sizeof number) == (ssize_t)sizeof number && state->flush_ns == 0) plan_flush(state);
    } else if (tag == &state->events) answer_requests(state);
    else if (tag == &state->signals) {
      pass_stop(state);
      pass_signals(state);
      state->behind = true;
    } else if (tag == &state->failure) {
      /* End of file: it was executed. */
      if (read(state->failure, &state->error, sizeof state->error) != (ssize_t)sizeof state->error) state->error = 0;
      epoll_ctl(state->epoll, EPOLL_CTL_DEL, state->failure, NULL);
      close(state->failure);
    } else if (tag == &state->listener) {
      state->unfiltered = true;
      epoll_ctl(state->epoll, EPOLL_CTL_DEL, state->listener, NULL);
    } else if (tag == &state->watched) watch_read();
    else tell_exit(state->stream, state->frame, tag);
  }
  bool any = count > 0 || state->behind;
  if (state->behind) reap(state);
  return any;
}

/* How long there is nothing to do by the clock: -1 for ever. */
static int rest_ms(const struct state *state) {
  uint64_t now = monotonic_ns(), next = holds_deadline();
  if (state->behind) return 0;
  if (next == 0 || (state->flush_ns != 0 && state->flush_ns < next)) next = state->flush_ns;
  if (tree_is_ending() && !state->ended && (next == 0 || now + look_ns < next)) next = now + look_ns;
  if (next == 0) return -1;
  return now >= next ? 0 : (int)((next - now + 999999) / 1000000);
}

static void tell_late(struct state *state) {
  for (uint32_t exec; (exec = holds_expire()) != 0;) {
    frame_begin(state->frame, FRAME_LATE, 0, 0);
    frame_number(state->frame, FIELD_EXEC, exec);
    stream_put(state->stream, state->frame);
  }
}

static void loop(struct state *state) {
  /* Not before the reader has taken note of the end: until then it adopts what we leave behind. */
  while (!state->ended || !(state->unfiltered || state->listener < 0) || !state->reader_gone) {
    /* Nobody reads, and nothing needs our answers: what is traced goes on without us. */
    if (state->reader_gone && state->listener < 0) return;
    handle(state, rest_ms(state));
    tell_late(state);
    /* While it is stopped as a whole, its end is the end of all. */
    bool ending = tree_is_ending() && !tree_has_ended();
    /* What is recorded has ended when all of it has. */
    if (record_is_on() && state->command_ended && !state->ended && !state->unfiltered && !state->error) {
      if (!state->waits) tell_waiting(state);
      ending = true;
    }
    if (state->command_ended && !state->ended && !ending) {
      /* The command's own end is told after all that ended before it. */
      while (handle(state, 0));
      if (state->error != 0) return;
      tell_end(state);
      stream_drain(state->stream);
    }
    if (state->flush_ns == 0 || monotonic_ns() < state->flush_ns) continue;
    /* A reader that does not keep up is tried again after the same pause. */
    state->flushed_ns = monotonic_ns();
    state->flush_ns = stream_flush(state->stream) ? 0 : state->flushed_ns + state->collect_ns;
  }
}

/* Each live process takes a descriptor; the command, which was started before, keeps the limit that it was given. */
static void allow_descriptors(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

static void leave_terminal(void) {
  setsid();
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < 3 && null >= 0; fd++) dup2(null, fd);
  if (null > 2) close(null);
  if (chdir("/") != 0) return;
}

static int start(struct state *state, const struct launched *launched, const struct watching *watching) {
  state->epoll = epoll_create1(EPOLL_CLOEXEC);
  sigset_t all;
  sigfillset(&all);
  state->signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
  processes_init(state->ptraces ? -1 : state->epoll);
  supervised = state;
  if (state->ptraces) tree_settle_by(settle);
  watch(state->epoll, state->wake, EPOLLIN, &state->wake);
  watch(state->epoll, state->events, EPOLLIN | EPOLLRDHUP, &state->events);
  watch(state->epoll, state->signals, EPOLLIN, &state->signals);
  if (state->command > 0) watch(state->epoll, state->failure, EPOLLIN, &state->failure);
  tell_hello(state);
  /* At once: should we be killed, the reader must know whom to look for. */
  stream_flush(state->stream);
  leave_terminal();
  allow_descriptors();
  if (watching->path != NULL) {
    state->watched = watch_open(watching, state->stream);
    if (state->watched >= 0) watch(state->epoll, state->watched, EPOLLIN, &state->watched);
    else watch_tell_lost(LOST_WATCHES);
  }
  struct session session = {.launched = launched, .stream = state->stream, .epoll = state->epoll};
  if (launched->listener >= 0) watch(state->epoll, launched->listener, 0, &state->listener);
  int error = state->driver->begin(&session);
  if (error == 0 && state->ptraces && !state->driver->ptraces) error = ptrace_attach(&session, false);
  if (error != 0) return error;
  if (state->command == 0) return 0;
  if (write(launched->go, "", 1) != 1) return EPIPE;
  close(launched->go);
  return 0;
}

int supervise(const struct supervision *options, const struct launched *launched, int error) {
  static struct frame frame;
  struct state state = {.events = options->events,
                        .wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                        .listener = launched->listener,
                        .failure = launched->failure,
                        .command = launched->pid,
                        .driver = options->driver,
                        .ptraces = options->driver->ptraces || options->exits_by_ptrace,
                        .watched = -1,
                        .frame = &frame};
  state.stream = stream_open(options->events, state.wake);
  spool_open(options->spool);
  keep_init();
  holds_init(options->driver->release, options->hold, (uint64_t)options->hold_ms * 1000000u);
  if (state.stream == NULL || !holds_share()) return 125;
  if (error == 0) error = start(&state, launched, &options->watching);
  if (error == 0) {
    loop(&state);
    error = state.error;
  }
  if (error != 0) tell_failure(&state, error);
  if (state.driver->end != NULL) state.driver->end();
  return error == 0 ? 0 : 125;
}
