/*
 * While the state before the run is being captured, the log of the spool tells that state as well, entry by entry, before it
 * changes: should the capture be killed, nothing else has it. With what is there then, and this log read from its end, the
 * state before can be put together (src/engine/state-before.ts).
 */
#ifndef SAVEPOINT_BEFORE_H
#define SAVEPOINT_BEFORE_H

#include "syscalls.h"
#include "tracee.h"

/* `op` is about to change `place` (and `to`, if it has two). */
void before_change(enum path_op op, const struct place *place, const struct place *to);
/* The state is captured, or nobody waits for it any more: the log speaks of nothing from here on. */
void before_captured(void);

#endif
