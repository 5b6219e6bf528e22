/* What the system tells of a process by its descriptor. */
#ifndef SAVEPOINT_PIDFD_H
#define SAVEPOINT_PIDFD_H

#include <stdbool.h>
#include <sys/types.h>

/* -1 when there is no such process, or it is a thread that is not its process's first. */
int pidfd_of(pid_t pid);
/* Its number and its parent's; false on systems before Linux 6.13, or when it is gone. */
bool pidfd_parents(int pidfd, pid_t *pid, pid_t *parent);
/* How it ended, as wait(2) tells; false before Linux 6.15, and until somebody has waited for it. */
bool pidfd_status(int pidfd, int *status);

#endif
