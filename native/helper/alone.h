/*
 * Files that a process has made for itself alone, as editors do with what they swap to: what it writes there until it removes the file is its
 * own, however long that takes. For one thread at a time.
 */
#ifndef SAVEPOINT_ALONE_H
#define SAVEPOINT_ALONE_H

#include "tracee.h"

/* It is about to make the file, and nobody else may have. */
void alone_note(const struct place *place, pid_t pid);
bool alone_made(const struct place *place, pid_t pid);

#endif
