/* Which paths a recording has, and which it leaves out. For one thread. */
#ifndef SAVEPOINT_RECORD_NOTE_H
#define SAVEPOINT_RECORD_NOTE_H

#include "call.h"
#include "seen.h"

/* This path and all below it are not recorded. Before anything else. */
void note_ignore(const char *path);
bool note_is_ignored(const struct place *place);
/* Notes that a path is seen `as`. NULL when it is not recorded. */
struct seen *note(const struct place *place, uint16_t as);
/* A call whose path could not be found out: it is lost, unless it fails anyway. */
void note_lost(const struct call *call, int dir, int path);
/* Nothing is noted any more. */
void note_finish(void);

#endif
