/* The driver by ptrace: executions and ends, as any user, and no changes of files. See drivers.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>

#include "ptrace.h"

static int probe(void) {
  int error = ptrace_problem();
  if (error == 0) {
    printf(keeps_privileges() ? "works, without changes of files\n"
                                  : "works, without changes of files and without new privileges\n");
    return 0;
  }
  printf("%s\n", error == EPERM ? "the system refuses it (kernel.yama.ptrace_scope, or a sandbox)" : strerror(error));
  return 1;
}

static int begin(const struct session *session) { return ptrace_attach(session, true); }

static void release(uint64_t pid) { ptrace(PTRACE_CONT, (pid_t)pid, 0, 0); }

const struct driver ptrace_driver = {
    .name = "ptrace", .probe = probe, .ptraces = true, .begin = begin, .release = release};
