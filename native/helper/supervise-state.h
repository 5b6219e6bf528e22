/*
 * What the parts of the main loop share: its state (supervise.c), what it tells by itself (supervise-frames.c) and what the
 * reader asks of it (requests.c).
 */
#ifndef SAVEPOINT_SUPERVISE_STATE_H
#define SAVEPOINT_SUPERVISE_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "drivers.h"
#include "frames.h"
#include "holders.h"

/* u32 kind, u32 number. MAX_DELAYED: of so many that were held at the end of the command the end is awaited. */
enum { REQUEST_BYTES = 8, MAX_DELAYED = 64 };

struct state {
  int epoll, events, signals, wake, listener, failure, watched;
  int error; /* why the command could not be executed */
  pid_t command;
  struct stream *stream;
  struct frame *frame;
  const struct driver *driver;
  bool ptraces;            /* the ends of processes, at least, come by ptrace */
  bool behind;             /* there are children that were not waited for yet */
  bool reader_gone, ended, unfiltered;
  bool follows;            /* somebody reads what goes on after the end */
  bool look_left;          /* and a process has ended since it was looked whether any does */
  bool waits;              /* it has been told that the recording goes on after the command */
  bool command_ended;      /* so, by `status`; `ended` when it has been told */
  int status;
  pid_t delayed[MAX_DELAYED]; /* whom we have held, so that they are not done when the command is */
  size_t delayed_count;
  bool delayed_known;  /* all who were held then are among them */
  uint64_t delayed_ns; /* until when all that is at work is waited for */
  uint8_t request[REQUEST_BYTES];
  size_t request_length;
  uint64_t flush_ns;   /* when to hand over what was collected; 0: there is nothing */
  uint64_t flushed_ns; /* when that was done last */
  uint64_t collect_ns; /* the time between */
};

/* The command could not be started, or nothing can be told of it: an errno. Returns when the reader has it, or is gone. */
void tell_failure(struct state *state, int error);
void tell_hello(struct state *state);
void tell_number(struct state *state, enum frame_type type, uint32_t number, struct unseen unseen);
/* Of the executions that were held for too long, that they go on. */
void tell_late(struct state *state);
/* The command has ended, while what is recorded goes on. */
void tell_waiting(struct state *state);
/* The command has ended, and who goes on. Afterwards it has ended for the loop, too. */
void tell_end(struct state *state);
/* What it did until now has been told, and who goes on: that is left to the next reader. */
void tell_left(struct state *state);

/* Does all that the reader has asked until now. When the reader is gone, what waited for its word is settled without it. */
void answer_requests(struct state *state);

#endif
