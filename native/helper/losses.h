/* What a call is about to destroy, or to take out of the target. */
#ifndef SAVEPOINT_LOSSES_H
#define SAVEPOINT_LOSSES_H

#include "call.h"

/* Keeps it, if it is in no snapshot yet. Before anybody can let the call go on. `to`: of those that have two paths. */
void losses_keep(const struct call *call, enum path_op op, const struct place *place, const struct place *to);

#endif
