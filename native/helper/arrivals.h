/*
 * Directories that somebody else has changed, or moved to where they are, since everything was last looked at. What is in one that was
 * moved has its old times, and is in no snapshot all the same. A directory is looked at before the run changes anything in it: later its
 * own changes could not be told from others'.
 */
#ifndef SAVEPOINT_ARRIVALS_H
#define SAVEPOINT_ARRIVALS_H

#include "tracee.h"

/* Everything was looked at then. */
void arrivals_since(uint64_t at_ns);
/* The run is about to change what is at `place`, which is inside of the target. */
void arrivals_sight(const struct place *place);
/* When the last of the directories above changed that may have come since; 0: none has. */
uint64_t arrivals_above(const struct place *place);

#endif
