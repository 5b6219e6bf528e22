/*
 * Savepoint's own directory, and where filesystems keep snapshots for it beside that, which processes of the run must not
 * change: that would take away what brings their work back.
 * Proof against accidents alone: a process that says it is Savepoint is believed.
 */
#ifndef SAVEPOINT_PROTECT_H
#define SAVEPOINT_PROTECT_H

#include <stdbool.h>

#include "processes.h"
#include "syscalls.h"
#include "tracee.h"

/* Absolute, without symbolic links. One more; false when there is no room. */
bool protect_add(const char *directory);
/* Each of them in turn; NULL after the last. */
const char *protect_directory(size_t index);
/* Whether the path is one of those directories, or lies in one. */
bool protect_concerns(const struct place *place);
/* Whether one of those directories lies in it. */
bool protect_is_in(const struct place *place);
/*
 * Whether the call is to be refused. `to`: its second path, or NULL. A process that makes a directory of the agreed name
 * in /proc, which always fails, is Savepoint from then on until it executes something (src/engine/home.ts).
 */
bool protect_refuses(struct process *process, enum path_op op, const struct place *place, const struct place *to);
/*
 * For calls of btrfs: whether it is Savepoint, or a program that this has started and waits for. Before that, Savepoint tries to make
 * another such directory, and afterwards to delete it (src/backends/run-program.ts). A command that it starts is no such program.
 */
bool protect_trusts(const struct process *process);

#endif
