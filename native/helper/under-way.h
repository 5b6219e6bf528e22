/*
 * The changes that a recording has let go on, and that may not have been carried out yet. What a call will do is decided by what is
 * there when it is told: so a change is looked at only when the one before it is done. Those that alter no name (a file is there and is
 * opened, a directory is there and cannot be made) are waited for only by what takes a name away: before that they find what they
 * were to find. Who calls one thing after the other never waits. For one thread.
 */
#ifndef SAVEPOINT_UNDER_WAY_H
#define SAVEPOINT_UNDER_WAY_H

#include "call.h"

/* Before a change is looked at: the one before it is done afterwards, or hangs. `makes_room`: it may move or delete something. */
void under_way_settle(const struct call *call, bool makes_room);
/* The change goes on from here, and may make something else of what is at `place`. `shows`: it will, as far as we can tell. */
void under_way_add(const struct call *call, const struct place *place, bool shows);
/* The same for one that alters no name, as long as nobody takes away what it finds. */
void under_way_add_other(const struct call *call);

#endif
