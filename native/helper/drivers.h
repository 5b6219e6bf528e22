/* The ways to see what a command does. One row each in drivers.c, and one file with its functions. */
#ifndef SAVEPOINT_DRIVERS_H
#define SAVEPOINT_DRIVERS_H

#include <stdbool.h>
#include <stdint.h>

#include "frames.h"
#include "launch.h"

/* What a driver works with while the command lives. */
struct session {
  const struct launched *launched;
  struct stream *stream;
  int epoll; /* of the main loop */
};

/* What is asked of a driver on the command line. */
struct driver_options {
  const char *cgroup;  /* ebpf: watch this control group, by its directory, and start no command */
  uint32_t ring_bytes; /* ebpf, for tests: the size of the ring of events; 0: as usual */
};

struct driver {
  const char *name;
  /* Prints "works", possibly "without …" behind it, or why it does not work here; 0 when it does. */
  int (*probe)(void);
  /* The command is launched with the seccomp filter. */
  bool filters;
  /* The helper is the tracer (ptrace) of every process of the run. */
  bool ptraces;
  /* What must be there before the command exists, or NULL. Returns 0 or an errno. */
  int (*prepare)(const struct driver_options *options);
  /* The command exists and waits for the word to execute. Returns 0 or an errno. */
  int (*begin)(const struct session *session);
  /* Tells all that has happened before the call; NULL where it is told in the moment it happens. */
  void (*settle)(void);
  /* Nothing is traced any more, or never was: ends what begin started; NULL where that is nothing. */
  void (*end)(void);
  /* Lets an execution go on that is held; `key` is what holds_add was given. */
  void (*release)(uint64_t key);
};

/* NULL when there is none of that name. */
const struct driver *driver_named(const char *name);

extern const struct driver seccomp_driver, ptrace_driver, ebpf_driver, none_driver;

#endif
