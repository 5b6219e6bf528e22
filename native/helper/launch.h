/* Starts the command, filtered or not, as a child of the helper. */
#ifndef SAVEPOINT_LAUNCH_H
#define SAVEPOINT_LAUNCH_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct launch {
  char **command;
  bool filters;  /* with seccomp */
  bool io_uring; /* works inside, although it cannot be seen */
  bool looks;    /* the filter tells of calls that only look, too */
  const char *ignored; /* signals that the command ignores: see inherit.h */
  unsigned file_limit;
  sigset_t signals; /* the mask that the command gets */
};

struct launched {
  pid_t pid;
  int listener; /* -1 without a filter */
  int go;       /* a byte written here makes it execute */
  int failure;  /* an errno can be read here if it could not; end of file if it could */
  bool privileges_off;
};

/* The child exists and waits. Returns 0, or the errno of what failed. */
int launch(const struct launch *options, struct launched *launched);

#endif
