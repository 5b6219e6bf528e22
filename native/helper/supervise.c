/* The helper's main loop. See supervise.h. */
#define _GNU_SOURCE
#include "supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exits.h"
#include "group-signals.h"
#include "holds.h"
#include "keep.h"
#include "processes.h"
#include "ptrace.h"
#include "record.h"
#include "spool.h"
#include "supervise-state.h"
#include "tree.h"
#include "watch.h"

enum { MAX_EVENTS = 256 };
/*
 * Frames that nobody waits for go out with some time between: each write wakes the reader. The time doubles as long as they keep
 * coming, since then what is done matters more than when it is known.
 */
static const uint64_t min_collect_ns = 5000000, max_collect_ns = 50000000;
/* How often is looked whether all that is being ended has gone. */
static const uint64_t look_ns = 20000000;
/* What goes on when the command has ended is at rest when it has done nothing for so long; and how long that is awaited. */
static const uint64_t rest_ns = 50000000, delayed_ns = 1000000000;

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
    if (pid == group_signals_witness()) {
      group_signals_lose_witness();
      continue;
    }
    state->look_left = true;
    if (state->ptraces) ptrace_handle(pid, child_status);
    if (pid != state->command || WIFSTOPPED(child_status)) continue;
    group_signals_end();
    state->status = child_status;
    state->command_ended = true;
  }
}

/* While all are being stopped, what ptrace tells is handled as ever: who was stopped before is not ours to continue. */
static struct state *supervised;
static void settle(void) { reap(supervised); }

static void pass_signals(struct state *state) {
  struct signalfd_siginfo signal;
  while (read(state->signals, &signal, sizeof signal) == (ssize_t)sizeof signal) {
    /* Afterwards its number may be another's. */
    if (signal.ssi_signo == SIGCHLD || state->command_ended) continue;
    if (state->command > 0) group_signals_pass(state->command, (int)signal.ssi_signo);
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
  uint64_t signals = group_signals_deadline();
  if (next == 0 || (signals != 0 && signals < next)) next = signals;
  if (tree_is_ending() && !state->ended && (next == 0 || now + look_ns < next)) next = now + look_ns;
  if (state->delayed_ns > now && (next == 0 || now + look_ns < next)) next = now + look_ns;
  if (next == 0) return -1;
  return now >= next ? 0 : (int)((next - now + 999999) / 1000000);
}

static bool is_among(pid_t pid, const pid_t *pids, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (pids[i] == pid) return true;
  }
  return false;
}

static bool is_at_work(const struct state *state) {
  for (size_t i = 0; i < state->delayed_count; i++) {
    if (tree_lives(state->delayed[i])) return true;
  }
  bool has_told = monotonic_ns() < stream_told_ns(state->stream) + rest_ns;
  return has_told ? tree_members(NULL, 0) > 0 : tree_is_busy();
}

/*
 * What goes on when the command has ended may need the reader: while the state before is captured, for its changes; or it has executed
 * something that is held by then, and goes on when there is a snapshot, or has waited long enough. Without us it would have been done
 * earlier. From then on what is still at work is the run's own for a while. What is held later delays nothing: that may have no end.
 */
static bool is_delayed(struct state *state) {
  pid_t waiting[MAX_DELAYED];
  if (!state->command_ended || state->ended || state->reader_gone) return false;
  bool goes_on = holds_want_changes() && tree_members(NULL, 0) > 0;
  size_t count = holds_waiting(waiting, MAX_DELAYED);
  for (size_t i = 0; i < count && state->delayed_count < MAX_DELAYED && (goes_on || !state->delayed_known); i++) {
    if (!is_among(waiting[i], state->delayed, state->delayed_count)) state->delayed[state->delayed_count++] = waiting[i];
  }
  for (size_t i = 0; i < state->delayed_count && !goes_on; i++)
    goes_on = is_among(state->delayed[i], waiting, count) && tree_lives(state->delayed[i]);
  if (goes_on || !state->delayed_known) state->delayed_ns = monotonic_ns() + delayed_ns;
  state->delayed_known = true;
  if (goes_on || (monotonic_ns() < state->delayed_ns && is_at_work(state))) return true;
  state->delayed_ns = 0;
  return false;
}

static void loop(struct state *state) {
  /* Not before the reader has taken note of the end: until then it adopts what we leave behind. */
  while (!state->ended || !(state->unfiltered || state->listener < 0) || !state->reader_gone) {
    /* Nobody reads, and nothing needs our answers: what is traced goes on without us. */
    if (state->reader_gone && state->listener < 0 && group_signals_deadline() == 0) return;
    handle(state, rest_ms(state));
    group_signals_settle(state->command);
    tell_late(state);
    /* While it is stopped as a whole, its end is the end of all. */
    bool ending = tree_is_ending() && !tree_has_ended();
    /* What is recorded has ended when all of it has. */
    if (record_is_on() && state->command_ended && !state->ended && !state->unfiltered && !state->error) {
      if (!state->waits) tell_waiting(state);
      ending = true;
    }
    bool waits = is_delayed(state);
    if (state->command_ended && !state->ended && !ending && !waits) {
      /* The command's own end is told after all that ended before it. */
      while (handle(state, 0));
      if (state->error != 0) return;
      tell_end(state);
    }
    if (state->follows && state->look_left) {
      state->look_left = false;
      if (tree_members(NULL, 0) == 0) {
        while (handle(state, 0));
        if (state->driver->settle != NULL) state->driver->settle();
        stream_drain(state->stream);
        return;
      }
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
  if (state->command > 0) group_signals_begin();
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
  group_signals_end();
  if (state.driver->end != NULL) state.driver->end();
  return error == 0 ? 0 : 125;
}
