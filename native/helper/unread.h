/*
 * Executions by processes that do not let us look at them: what has made itself undumpable, as agents that hold keys do, is shown to
 * root alone, and so is a program that its user may execute and not read. What it is about to execute cannot be read; what it has become
 * can, as a rule. So it is looked at until it has become that, by a thread of its own and at each call of anybody, and told then. Nothing
 * of this costs those that can be read anything. Every call needs the lock of processes.h.
 */
#ifndef SAVEPOINT_UNREAD_H
#define SAVEPOINT_UNREAD_H

#include "call.h"

/* The call executes something, and its memory is shut. */
void unread_note(const struct call *call);
/* Whether there are any that are not told yet. */
bool unread_any(void);
/* Tells what is known now that thread `tid` makes a call: before its process is looked for, whose parent may be one of them. */
void unread_settle(struct frame *frame, pid_t tid);
/*
 * One that is to be guarded waits, untold, for its first call. Tells it if this is that one, or that of a child; returns whether the call
 * is held for it, which it must not be unless `may_hold`.
 */
bool unread_hold(const struct call *call, bool may_hold);
/*
 * The call goes on: looks almost without a pause at what was noted a moment ago, as long as nobody else calls. Short commands live for less than
 * a sleep takes. Takes the lock itself.
 */
void unread_watch(const struct call *call);
/* The process has ended: tells what it had become, or that this is not known. `status`: NULL when nobody knows. */
void unread_end(struct frame *frame, const struct process *process, const int *status);

#endif
