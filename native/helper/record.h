/*
 * A recording: instead of telling what the command does, notes every path that it looks at or changes, with the state that it had
 * when it was seen first, and saves each content before the first call that can change it. What is only read is read when all is
 * over: as every change by the recording itself is seen here first, it is the same then, or somebody else has changed it, which its
 * times tell. docs/decisions/016-record.md says why.
 */
#ifndef SAVEPOINT_RECORD_H
#define SAVEPOINT_RECORD_H

#include <stdbool.h>

#include "call.h"

/* From the command line, before anything else. There is a spool (spool.h) without a target. `looks`: also what is only looked at. */
void record_start(bool looks);
/* This path and all below it are not recorded. */
void record_ignore(const char *path);
bool record_is_on(void);
bool record_is_looking(void);

/* A call that waits for our answer. */
void record_call(struct call *call, bool is_foreign);
/* A file that the command begins with, open for writing. */
void record_inherited(const struct place *place);
/* Nothing is recorded any more. */
void record_finish(void);

#endif
