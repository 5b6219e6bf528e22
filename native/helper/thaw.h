/*
 * Sees to it that what we stop goes on should we be killed meanwhile: a process of its own that knows whom we have stopped,
 * and continues them when we are gone without a word.
 */
#ifndef SAVEPOINT_THAW_H
#define SAVEPOINT_THAW_H

#include <sys/types.h>

/* Is that process: reads the numbers of those that are stopped, as pid_t, from a descriptor until its end, and continues them. */
_Noreturn void thaw_stand_by(int from);
/* Before anybody is stopped; the second call changes nothing. */
void thaw_begin(void);
/* This one is about to be stopped. */
void thaw_note(pid_t pid);
/* They go on, or are gone: nothing is to be done any more. */
void thaw_end(void);
/* The process itself, which is none of the run's; 0 when there is none. */
pid_t thaw_keeper(void);

#endif
