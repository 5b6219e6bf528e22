/* Stands beside the running command: hears of exits, talks to the reader, and stays as long as anything is filtered. */
#ifndef SAVEPOINT_SUPERVISE_H
#define SAVEPOINT_SUPERVISE_H

#include "drivers.h"
#include "watch.h"

struct supervision {
  const struct driver *driver;
  bool exits_by_ptrace; /* the kernel has no other way to tell them all */
  int events;       /* the socket */
  const char *hold; /* see holds_init */
  unsigned hold_ms;
  struct watching watching;
  const char *spool; /* see keep_init */
};

/* Without a command (its pid is 0) until the reader goes. `error`: why the launch failed, or 0. Returns the exit code of the helper itself. */
int supervise(const struct supervision *options, const struct launched *launched, int error);

#endif
