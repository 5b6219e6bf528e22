/*
 * What is being renamed. A call is told before it is carried out, and a rename stands for all that is in a directory: so when it
 * turns out that nothing was moved, that is told, too. All of it under the lock of processes.h.
 */
#ifndef SAVEPOINT_MOVES_H
#define SAVEPOINT_MOVES_H

#include "call.h"

/* `from` is about to be renamed to, or exchanged with, `to`. */
void moves_add(const struct call *call, enum path_op op, const struct place *from, const struct place *to);
/* Thread `tid` calls again, so it is done with what it called before; of the others it is seen what they have done. */
void moves_settle(struct stream *stream, struct frame *frame, pid_t tid);
/* Process `pid` has ended. */
void moves_settle_process(struct stream *stream, struct frame *frame, pid_t pid);
/* Before everybody is told that all was told: of threads that are at something else by now, or wait, it is known. */
void moves_settle_idle(struct stream *stream, struct frame *frame);

#endif
