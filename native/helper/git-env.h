/* The variables that say where git's directories are, for an execution that is held: no option of git's need name them. */
#ifndef SAVEPOINT_GIT_ENV_H
#define SAVEPOINT_GIT_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "frames.h"

/* Whether a path or a first argument names git. */
bool names_git(const char *path);
/* Of the environment that a thread is about to execute with: pointers of `word` bytes at `address` of its memory. */
void put_git_env(struct frame *frame, pid_t tid, uint64_t address, size_t word);
/* Of the environment that a process has begun with. */
void put_own_git_env(struct frame *frame, pid_t pid);

#endif
