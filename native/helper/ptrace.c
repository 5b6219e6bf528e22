/* Stops come in by wait(2), are told, and end at once. See ptrace.h. */
#define _GNU_SOURCE
#include "ptrace.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "executions.h"
#include "exits.h"
#include "holds.h"
#include "processes.h"
#include "tree.h"
#include "watch.h"

static struct {
  struct stream *stream;
  pid_t command;
  bool tells_executions, privileges_off, stopped;
} tracer;
static struct frame frame;

/* What is forked is traced as well. Not EXITKILL: nothing hangs on our life. */
static const long follow = PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE;

int ptrace_problem(void) {
  int pipes[2];
  char byte;
  if (pipe(pipes) != 0) return errno;
  pid_t pid = fork();
  if (pid == 0) {
    close(pipes[1]);
    _exit(read(pipes[0], &byte, 1) == 0 ? 0 : 1);
  }
  int error = pid < 0 || ptrace(PTRACE_SEIZE, pid, 0, follow) != 0 ? errno : 0;
  close(pipes[0]);
  close(pipes[1]);
  /* Its end is the first that comes of it: it receives nothing that could stop it. */
  if (pid > 0) waitpid(pid, NULL, __WALL);
  return error;
}

bool keeps_privileges(void) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[2] = {0};
  return syscall(SYS_capget, &header, data) == 0 && (data[0].effective & (1u << CAP_SYS_PTRACE)) != 0;
}

int ptrace_attach(const struct session *session, bool tells_executions) {
  tracer.stream = session->stream;
  tracer.command = session->launched->pid;
  tracer.privileges_off = !keeps_privileges();
  tracer.tells_executions = tells_executions;
  long options = follow | (tells_executions ? PTRACE_O_TRACEEXEC : 0);
  return ptrace(PTRACE_SEIZE, tracer.command, 0, options) == 0 ? 0 : errno;
}

/* The reader stops with the command, and cannot see it: to whoever looks, a traced process that stopped is a traced one. */
static void tell_stop(pid_t pid, bool stopped) {
  if (pid != tracer.command || stopped == tracer.stopped) return;
  /* By us, for a moment: none of the reader's business. */
  if (stopped && tree_is_frozen()) return;
  tracer.stopped = stopped;
  frame_begin(&frame, FRAME_STOPPED, 0, (uint32_t)pid);
  frame_number(&frame, FIELD_NUMBER, stopped);
  stream_put(tracer.stream, &frame);
  stream_flush(tracer.stream);
}

/* Who was stopped by others, and so is not for us to continue: in /proc it looks as any traced process does for a moment. */
static struct {
  pid_t *pids;
  size_t count, room;
} stopped;

static void note_stopped(pid_t pid, bool is_stopped) {
  size_t at = 0;
  while (at < stopped.count && stopped.pids[at] != pid) at++;
  if (!is_stopped && at < stopped.count) stopped.pids[at] = stopped.pids[--stopped.count];
  if (!is_stopped || at < stopped.count) return;
  if (stopped.count == stopped.room) {
    size_t room = stopped.room == 0 ? 16 : stopped.room * 2;
    pid_t *pids = realloc(stopped.pids, room * sizeof *pids);
    if (pids == NULL) return;
    stopped.pids = pids;
    stopped.room = room;
  }
  stopped.pids[stopped.count++] = pid;
}

bool ptrace_is_stopped(pid_t pid) {
  for (size_t i = 0; i < stopped.count; i++) {
    if (stopped.pids[i] == pid) return true;
  }
  return false;
}

static bool stops_groups(int signal) {
  return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

/* A stop of the whole process lasts until somebody continues it; other stops of this kind are how a traced process begins. */
static void handle_stop(pid_t pid, int signal) {
  if (stops_groups(signal)) {
    tell_stop(pid, true);
    if (!tree_has_stopped(pid)) note_stopped(pid, true);
    ptrace(PTRACE_LISTEN, pid, 0, 0);
    return;
  }
  tell_stop(pid, false);
  note_stopped(pid, false);
  /* While its parent is certainly there: a process whose parents have gone could not be told whose it is. */
  if (tracer.tells_executions) {
    processes_lock();
    process_of(pid);
    processes_unlock();
  }
  ptrace(PTRACE_CONT, pid, 0, 0);
}

void ptrace_handle(pid_t pid, int status) {
  if (!WIFSTOPPED(status)) {
    note_stopped(pid, false);
    watch_read();
    tell_exit_status(tracer.stream, &frame, pid, status);
    return;
  }
  int event = status >> 16, signal = WSTOPSIG(status);
  if (event == PTRACE_EVENT_STOP) {
    handle_stop(pid, signal);
    return;
  }
  /* About to receive this one, it stops for certain, a moment later; with anything else to tell, it does not. */
  note_stopped(pid, event == 0 && signal == SIGSTOP && !tree_has_stopped(pid));
  if (event == PTRACE_EVENT_EXEC) {
    /* What it changed before is told before, as the former program's; whether this one is held for a snapshot depends on it. */
    watch_read();
    processes_lock();
    bool held = tell_executed(tracer.stream, &frame, pid, tracer.privileges_off);
    processes_unlock();
    if (held) return;
  }
  /* Without an event it is a signal that the process is about to receive. */
  ptrace(PTRACE_CONT, pid, 0, event == 0 ? signal : 0);
}
