/* How an execution is told, whichever driver saw it. Every call needs the lock of processes.h. */
#ifndef SAVEPOINT_EXECUTIONS_H
#define SAVEPOINT_EXECUTIONS_H

#include <stdbool.h>

#include "frames.h"
#include "holds.h"
#include "processes.h"

enum { MAX_ARGUMENTS = 4096, MAX_ARGV_BYTES = 32 * 1024 };

/*
 * Begins the frame of an execution by thread `tid` of `process`, with everything but its arguments: `loaded` is the file
 * that the process will be, `program` the one that was named. Returns the number of the execution.
 */
uint32_t frame_execution(struct frame *frame, struct process *process, pid_t tid, const struct stat *loaded,
                         const char *program, size_t length);
/* What a process has become. Both lie in memory that the next one uses again. */
struct executed {
  const char *program;
  struct arguments arguments;
};
/*
 * Makes the frame of the execution that a process has come from, by what /proc says of it. Where that is shut, its name stands for its
 * program and its arguments. Returns the number of the execution.
 */
uint32_t frame_executed(struct frame *frame, struct process *process, bool privileges_off, struct executed *executed);
/*
 * Tells the execution of a process that is stopped in its first moment as another program, by what /proc says of it.
 * Returns whether it is held; the key of that is its number.
 */
bool tell_executed(struct stream *stream, struct frame *frame, pid_t pid, bool privileges_off);

#endif
