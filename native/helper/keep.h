/*
 * Keeps what a call is about to destroy, or take out of the target, when it is in no snapshot as it is: the file is
 * copied to the spool, or gets another name there when it is large and its bytes are not what goes.
 */
#ifndef SAVEPOINT_KEEP_H
#define SAVEPOINT_KEEP_H

#include "frames.h"
#include "syscalls.h"
#include "tracee.h"

/* How long a run may take to write what it has opened. */
enum { WRITE_NS = 1000000000 };

/* After spool_open. */
void keep_init(void);
/* A look number `number` begins now: what it captures is safe once keep_captured is told so. */
void keep_look(uint32_t number);
/*
 * `all`: everything was looked at. Otherwise only what had been told: somebody else may have changed what this run names only
 * when it destroys it. Under the lock of processes.h, as the rest.
 */
void keep_captured(uint32_t number, bool all);
/*
 * While the state before is still being captured: a command goes on that would else be held. Of what the run makes until that is done
 * everything is kept from here on, whoever destroys it: also links, what is empty, each name of a file.
 */
void keep_all(void);
/* The state before is captured. */
void keep_begun(void);
/* Something is about to be moved, or exchanged: perhaps the target, or what takes its place. */
void keep_moved(const struct place *from, const struct place *to);
/* A change of what is at `place` was told: the next capture looks at it. After `keep`, if that is for the same call. */
void keep_told(const struct place *place);
/* Whether one was, as far as is known. */
bool keep_is_told(const struct place *place);
/* Whether a small file that the run was at has changed long after: by somebody else, or through a descriptor that is still open. */
bool keep_is_edited(const struct place *place);

struct loss {
  const struct place *place; /* what is destroyed; it exists */
  enum path_op op;
  bool empties;       /* its bytes go, not its name */
  uint32_t *own_left; /* it goes with a directory, which leaves the target: so many more of what the run has made are kept; else NULL */
  uint32_t exec;
  pid_t pid;
};
/* Uses `frame`, and leaves in it the frame to be sent; false when there was nothing to keep. */
bool keep(const struct loss *loss, struct frame *frame);
/* All that is in a directory; puts the frames. */
void keep_below(const struct loss *loss, struct frame *frame, struct stream *stream);

#endif
