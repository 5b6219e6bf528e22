/* Calls of a recording that change nothing: what they look at is noted. For one thread. */
#ifndef SAVEPOINT_RECORD_LOOK_H
#define SAVEPOINT_RECORD_LOOK_H

#include "call.h"

/* `flags`: of an open. */
void record_look(struct call *call, const struct rule *rule, bool follows, int flags);

#endif
