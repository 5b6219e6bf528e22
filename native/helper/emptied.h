/* Which files that were there the run has emptied itself: whatever is in them since is its own work. For one thread at a time. */
#ifndef SAVEPOINT_EMPTIED_H
#define SAVEPOINT_EMPTIED_H

#include "call.h"
#include "syscalls.h"

/* Of each call that is about to be carried out; `to` is what a rename would replace, or NULL. */
void emptied_note(const struct call *call, enum path_op op, const struct place *place, const struct place *to);
bool emptied_is(const struct place *place);

#endif
