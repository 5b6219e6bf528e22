/* The driver by seccomp notification: synchronous, with every change of a file. See drivers.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drivers.h"
#include "exits.h"
#include "filter.h"
#include "holds.h"
#include "mounts.h"
#include "notify.h"
#include "ptrace.h"
#include "tree.h"

static struct notifier notifier;
static pid_t guard;

static int probe(void) {
  if (!exits_are_known() && ptrace_problem() != 0) {
    printf("this kernel does not tell how processes ended (Linux 6.15 does), and ptrace is refused\n");
    return 1;
  }
  pid_t pid = fork();
  if (pid == 0) {
    bool privileges_off;
    int listener = filter_install(false, false, &privileges_off);
    _exit(listener >= 0 ? (privileges_off ? 200 : 0) : errno);
  }
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) {
    printf("a process for the test could not be started\n");
    return 1;
  }
  int error = WEXITSTATUS(status);
  if (error == 0 || error == 200) {
    printf(error == 0 ? "works\n" : "works, without new privileges\n");
    return 0;
  }
  printf("%s\n", error == EBUSY ? "another tracer of this kind is at work outside" : strerror(error));
  return 1;
}

/*
 * Lets everything pass should the helper die, so that the command does not, unless nothing of it could be undone yet. In a
 * session of its own, without a terminal.
 */
static void start_guard(int listener) {
  int helper = (int)syscall(SYS_pidfd_open, getpid(), 0);
  /* Whoever kills the helper by its name must not mean the guard as well, not even in its first moment: without both, every filtered call fails. */
  char name[16];
  prctl(PR_GET_NAME, name);
  prctl(PR_SET_NAME, "savepoint-guard");
  guard = fork();
  if (guard != 0) {
    prctl(PR_SET_NAME, name);
    if (helper >= 0) close(helper);
    return;
  }
  setsid();
  int low = listener < helper ? listener : helper, high = listener < helper ? helper : listener;
  if (low > 0) syscall(SYS_close_range, 0, low - 1, 0);
  if (high > low + 1) syscall(SYS_close_range, low + 1, high - 1, 0);
  syscall(SYS_close_range, high + 1, ~0U, 0);
  struct pollfd ends[2] = {{.fd = helper, .events = POLLIN}, {.fd = listener, .events = 0}};
  while (poll(ends, 2, -1) < 0 && errno == EINTR);
  if ((ends[1].revents & POLLHUP) == 0) {
    if (holds_want_changes()) {
      notify_end(listener);
      _exit(0);
    }
    holds_give_up();
    notify_pass(listener);
  }
  _exit(0);
}

static int begin(const struct session *session) {
  const struct launched *launched = session->launched;
  notifier = (struct notifier){
      .listener = launched->listener,
      .stream = session->stream,
      .privileges_off = launched->privileges_off,
      .begun_ns = realtime_ns()};
  if (!notify_share()) return ENOMEM;
  start_guard(launched->listener);
  tree_init(guard);
  notify_inherited(&notifier, launched->pid);
  mounts_init();
  return notify_start(&notifier);
}

static void release(uint64_t notification) { notify_continue(notifier.listener, notification); }

/* Nothing is filtered any more. What is not waited for here would be left to the reader, whose child it becomes. */
static void end(void) {
  if (guard <= 0) return;
  kill(guard, SIGKILL);
  waitpid(guard, NULL, 0);
}

const struct driver seccomp_driver = {
    .name = "seccomp", .probe = probe, .filters = true, .begin = begin, .end = end, .release = release};
