/*
 * Keeps what a call is about to destroy, when it is younger than the last snapshot and so in none: the file gets another
 * name in a directory of ours (or is copied there, when its bytes are what goes), and a frame in the log beside it says
 * what it was. It is there whatever happens to us then.
 */
#ifndef SAVEPOINT_KEEP_H
#define SAVEPOINT_KEEP_H

#include "frames.h"
#include "syscalls.h"
#include "tracee.h"

/* `spool`: a directory whose file `target` has the path below which files are kept; NULL: none are. */
void keep_init(const char *spool);
/* That path; NULL when there is none. */
const char *keep_target(void);
/* A look number `number` begins now: what it captures is safe once keep_captured is told so. */
void keep_look(uint32_t number);
void keep_captured(uint32_t number);

/*
 * While the state before the run is being captured, what is destroyed is copied as well: should the capture be killed, nothing
 * else has it. From here on the snapshot does.
 */
void keep_begun(void);

/* Whether it lies in the target, or has the target in it. */
bool keep_concerns(const struct place *place);

struct loss {
  const struct place *place; /* what is destroyed; it exists */
  enum path_op op;
  bool empties; /* its bytes go, not its name */
  uint32_t exec;
  pid_t pid;
};
/* Uses `frame`, and leaves in it the frame to be sent; false when there was nothing to keep. */
bool keep(const struct loss *loss, struct frame *frame);

#endif
