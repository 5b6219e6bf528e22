/* By when the witness got the same, in memory that it shares with us. See group-signals.h. */
#define _GNU_SOURCE
#include "group-signals.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "frames.h"

enum { SIGNALS = 65 };
/* Those that the supervisor passes on (run-child.ts). */
static const int sent_to_groups[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
enum { SENT_TO_GROUPS = sizeof sent_to_groups / sizeof *sent_to_groups };
/* `timeout` sends to its child first, and to the group next; and the witness may have to wait for a processor. */
static const uint64_t wait_ns = 20000000;
/* A busy supervisor passes on late. What it has not passed on by then, it never will. */
static const uint64_t trust_ns = 2000000000;

static pid_t witness, group;
static _Atomic uint64_t *seen_ns; /* by signal: when the witness got it last */
static uint64_t taken_ns[SIGNALS]; /* what was seen before has been settled */
static uint64_t due_ns[SIGNALS];   /* 0: not asked for */

/* The supervisor does not pass these on. */
static bool is_of_keys(const struct signalfd_siginfo *info) {
  return info->ssi_code == SI_KERNEL && (info->ssi_signo == SIGINT || info->ssi_signo == SIGQUIT);
}

static _Noreturn void stand_by(pid_t helper) {
  prctl(PR_SET_NAME, "savepoint-group");
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t all;
  sigfillset(&all);
  /* It has nothing else open: nobody may have to wait for it, at a pipe or for a mount. */
  int signals = signalfd(-1, &all, SFD_CLOEXEC);
  if (getppid() != helper || signals < 0 || dup2(signals, 0) != 0 || chdir("/") != 0) _exit(1);
  syscall(SYS_close_range, 1, ~0U, 0);
  for (;;) {
    struct signalfd_siginfo info;
    ssize_t got = read(0, &info, sizeof info);
    if (got < 0 && errno == EINTR) continue;
    if (got != (ssize_t)sizeof info) _exit(1);
    if (!is_of_keys(&info)) atomic_store(&seen_ns[info.ssi_signo], monotonic_ns());
  }
}

void group_signals_begin(void) {
  void *memory = mmap(NULL, SIGNALS * sizeof *seen_ns, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  seen_ns = memory;
  group = getpgrp();
  pid_t self = getpid(), pid = fork();
  if (pid == 0) stand_by(self);
  if (pid > 0) witness = pid;
}

static bool is_sent_to_groups(int signal) {
  for (size_t i = 0; i < SENT_TO_GROUPS; i++) {
    if (sent_to_groups[i] == signal) return true;
  }
  return false;
}

void group_signals_pass(pid_t command, int signal) {
  if (witness == 0 || !is_sent_to_groups(signal)) kill(command, signal);
  else if (due_ns[signal] == 0) due_ns[signal] = monotonic_ns() + wait_ns;
}

uint64_t group_signals_deadline(void) {
  uint64_t next = 0;
  for (size_t i = 0; i < SENT_TO_GROUPS; i++) {
    uint64_t due = due_ns[sent_to_groups[i]];
    if (due != 0 && (next == 0 || due < next)) next = due;
  }
  return next;
}

/* Takes note of it: one that was seen keeps one from being passed on. */
static bool take_seen(int signal, uint64_t now) {
  uint64_t seen = atomic_load(&seen_ns[signal]), continued = atomic_load(&seen_ns[SIGCONT]);
  bool is_new = seen > taken_ns[signal];
  taken_ns[signal] = now;
  /* A job that was stopped gets what it was sent when it goes on; the witness does not stop with it. */
  return is_new && now < (seen > continued ? seen : continued) + trust_ns;
}

void group_signals_settle(pid_t command) {
  uint64_t now = monotonic_ns();
  for (size_t i = 0; i < SENT_TO_GROUPS; i++) {
    int signal = sent_to_groups[i];
    if (due_ns[signal] == 0 || now < due_ns[signal]) continue;
    due_ns[signal] = 0;
    /* A command that has left the group has nothing from it. */
    if (!take_seen(signal, now) || getpgid(command) != group) kill(command, signal);
  }
}

void group_signals_end(void) {
  memset(due_ns, 0, sizeof due_ns);
  if (witness == 0) return;
  kill(witness, SIGKILL);
  waitpid(witness, NULL, 0);
  witness = 0;
}

pid_t group_signals_witness(void) { return witness; }

void group_signals_lose_witness(void) { witness = 0; }
