/* How a process ended. */
#ifndef SAVEPOINT_EXITS_H
#define SAVEPOINT_EXITS_H

#include <stdbool.h>

#include "frames.h"
#include "processes.h"

/* Tells the end of a process whose descriptor says that it has ended, and forgets it. */
void tell_exit(struct stream *stream, struct frame *frame, struct process *process);
/* The same for a process by its number, whose status wait(2) has told; does nothing when it has executed nothing. */
void tell_exit_status(struct stream *stream, struct frame *frame, pid_t pid, int status);
/* Whether the system can say how a process that is nobody's child of ours ended. */
bool exits_are_known(void);

#endif
