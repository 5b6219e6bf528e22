/*
 * The processes of the run as a tree under this one: what leaves its parents comes to us (PR_SET_CHILD_SUBREAPER), so none
 * is missed. Found anew in /proc at each call.
 */
#ifndef SAVEPOINT_TREE_H
#define SAVEPOINT_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* `except`: a child that is none of the run's, the guard. */
void tree_init(pid_t except);
/* What handles the stops of traced processes, called between two looks; NULL, as at first: there are none. */
void tree_settle_by(void (*settle)(void));
/*
 * Stops all until no further one appears; should we be killed, they go on (thaw.h). One that waits in a system call for our
 * own answer cannot stop before that, and is not waited for beyond a limit: it stops before its next instruction.
 */
void tree_freeze(void);
/* Lets go on what `tree_freeze` has stopped; what had been stopped before stays so. */
void tree_thaw(void);
bool tree_is_frozen(void);
/* How many there are; the numbers of at most `room` of them go to `pids`. */
size_t tree_members(pid_t *pids, size_t room);
/* Whether it has not ended; who was killed may stand among the processes until its parent asks. */
bool tree_lives(pid_t pid);
/* Whether any of them is at work this moment, or waits for a disk. */
bool tree_is_busy(void);
/* Whether it is one of those that `tree_freeze` has stopped. */
bool tree_has_stopped(pid_t pid);
/* Asks all to end, and makes them after `grace_ms`; the second call changes nothing. */
void tree_end(uint32_t grace_ms);
bool tree_is_ending(void);
/* To be asked again and again: whether those that were asked are gone, or cannot be made to go. */
bool tree_has_ended(void);

#endif
