/* On which processor whoever calls goes on, and we are woken. */
#ifndef SAVEPOINT_WAKE_UP_H
#define SAVEPOINT_WAKE_UP_H

#include <sys/types.h>

/* Once, before the first call. */
void wake_up_begin(int listener);
/* Around each call that the thread takes: before it waits for one, when thread `tid` has called, and before that is let go. */
void wake_up_before_receiving(void);
void wake_up_received(pid_t tid);
void wake_up_before_answering(void);

#endif
