/*
 * Savepoint's own directory, which processes of the run must not change: that would take away what brings their work back.
 * Proof against accidents alone: a process that says it is Savepoint is believed.
 */
#ifndef SAVEPOINT_PROTECT_H
#define SAVEPOINT_PROTECT_H

#include <stdbool.h>

#include "processes.h"
#include "syscalls.h"
#include "tracee.h"

/* `directory`: absolute, without symbolic links; NULL: nothing is protected. */
void protect_init(const char *directory);
/* Whether a path is that directory or lies in it. */
bool protect_concerns(const struct place *place);
/*
 * Whether the call is to be refused. `to`: its second path, or NULL. A process that makes a directory of the agreed name
 * in /proc, which always fails, is Savepoint from then on until it executes something (src/engine/home.ts).
 */
bool protect_refuses(struct process *process, enum path_op op, const struct place *place, const struct place *to);

#endif
