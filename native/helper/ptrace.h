/*
 * The helper as tracer of every process of the run, for events alone: forks, executions, ends. Serves the ptrace driver, and
 * the seccomp driver on kernels that tell ends in no other way. All calls from one thread. Should the helper die, everything
 * goes on untraced.
 */
#ifndef SAVEPOINT_PTRACE_H
#define SAVEPOINT_PTRACE_H

#include "drivers.h"

/* Whether programs that gain rights when they are executed still do when they are traced. */
bool keeps_privileges(void);
/* 0, or the errno with which the system refuses to trace a child. */
int ptrace_problem(void);
/* Becomes the tracer of the command, which waits, and of all that descends from it. Returns 0 or an errno. */
int ptrace_attach(const struct session *session, bool tells_executions);
/* Takes what wait(2) said of a process, tells it, and lets the process go on. */
void ptrace_handle(pid_t pid, int status);
/* Whether it is known to be stopped as a whole (Ctrl-Z, SIGSTOP), and not by `tree_freeze`. */
bool ptrace_is_stopped(pid_t pid);

#endif
