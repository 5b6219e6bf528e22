/* Calls of a recording that change something: what they will change is noted and saved before. For one thread. */
#ifndef SAVEPOINT_RECORD_CHANGE_H
#define SAVEPOINT_RECORD_CHANGE_H

#include "call.h"

/* `flags`: of an open. */
void record_change(struct call *call, const struct rule *rule, int flags, bool follows);

#endif
