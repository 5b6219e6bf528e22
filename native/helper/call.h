/* A system call that waits for our answer, and what its arguments mean. */
#ifndef SAVEPOINT_CALL_H
#define SAVEPOINT_CALL_H

#include <linux/seccomp.h>

#include "frames.h"
#include "notify.h"
#include "processes.h"
#include "program.h"
#include "syscalls.h"
#include "tracee.h"

enum { MAX_TEXT = PATH_ROOM };

struct call {
  struct notifier *notifier;
  const struct seccomp_notif *notification;
  struct process *process;
  struct frame *frame;
  bool held;    /* set when it is not to go on yet */
  bool refused; /* set when it is to fail */
  bool is_of_subvolume; /* it is told as if it were about a directory (subvolumes.h) */
  bool unread;  /* set when an execution is still to be told (unread.h) */
};

static inline uint64_t argument(const struct call *call, int index) { return call->notification->data.args[index]; }
static inline pid_t tid_of(const struct call *call) { return (pid_t)call->notification->pid; }

/* Whether the thread still waits in this call: if not, what was read may be another's. */
bool still_waits(const struct call *call);
/* What `path` means to the process, seen from its directory `dir` (AT_FDCWD or a descriptor). */
void locate(const struct call *call, int dir, const char *path, bool follows, struct place *place);
/* The path at argument `path` seen from argument `dir` (both as in a rule). */
void place_at(const struct call *call, int dir, int path, bool follows, bool may_be_empty, struct place *place);

/* Tells a change of files, keeps what it destroys, and holds or refuses it, if it must be (notify-path.c). */
void tell_path(struct call *call, const struct rule *rule);
/* Whether the paths of the process are to be translated into ours. */
bool sees_otherwise(const struct call *call);
/* What a file is opened for. */
int open_flags(const struct call *call);
/* Whether it takes the directory that it begins at for the root of all. */
bool opens_in_root(const struct call *call);
/* Where a socket is bound to; false when that is no file. */
bool socket_place(const struct call *call, struct place *place);
/* The call is about to change what paths mean: for the process, or, as a mount may, for all. */
void note_mounts(const struct call *call, const struct rule *rule);
/*
 * Tells an execution, and holds it, if it must be (notify-exec.c). `vectors`: the addresses of argv and of the environment.
 * The path is NULL when it could not be read.
 */
void tell_exec(struct call *call, const struct named *named, const uint64_t *vectors, size_t word);

#endif
