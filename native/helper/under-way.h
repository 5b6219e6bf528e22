/*
 * The change that a recording has let go on last, and that may not have been carried out yet. What a call will do is decided by what is
 * there when it is told: so a change is looked at only when the one before it is done, if that makes a difference. Who calls one thing
 * after the other never waits. For one thread.
 */
#ifndef SAVEPOINT_UNDER_WAY_H
#define SAVEPOINT_UNDER_WAY_H

#include "call.h"

/* Before a change is looked at: the one before it is done afterwards, or hangs. */
void under_way_settle(const struct call *call);
/* The change goes on from here, and will make something else of what is at `place`. */
void under_way_add(const struct call *call, const struct place *place);

#endif
