/* Stands beside the running command: hears of exits, talks to the reader, and stays as long as anything is filtered. */
#ifndef SAVEPOINT_SUPERVISE_H
#define SAVEPOINT_SUPERVISE_H

#include "launch.h"
#include "watch.h"

struct supervision {
  int events;       /* the socket */
  const char *hold; /* see holds_init */
  unsigned hold_ms;
  struct watching watching;
};

/* `error`: why the launch failed, or 0. Returns the exit code of the helper itself. */
int supervise(const struct supervision *options, const struct launched *launched, int error);
/* Tells whether the driver works here: 0, or prints the reason. */
int probe(void);

#endif
