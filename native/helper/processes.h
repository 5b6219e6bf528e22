/*
 * The processes of the run that have executed something, and which execution each belongs to. Every call
 * needs the lock, which is held as long as a process that a call returned is used.
 */
#ifndef SAVEPOINT_PROCESSES_H
#define SAVEPOINT_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct process {
  pid_t pid;
  pid_t ppid; /* as it was when a thread of it was looked at last */
  int pidfd;
  uint32_t exec, parent, depth;
  /* Until its next call shows that the system let it happen: what it would be, and what it was before. */
  bool unverified;
  bool pending;     /* what was seen since came from threads beside the one that executes: those are of what it was before */
  pid_t executes;   /* that thread */
  dev_t device;
  ino_t inode;
  uint32_t exec_before, parent_before, depth_before;
  bool executed_before;
  bool executed; /* has an execution of its own */
  uint64_t executed_ns;
  bool detached; /* its parents are gone, and nobody can tell who they were */
  uint64_t image; /* where its memory lies (lineage.h), if that was seen since its execution; 0 otherwise */
  bool other_mounts; /* sees other filesystems than we do: its paths may mean something else */
  bool mounts_known; /* whether that was looked at since it was forked, or executed something */
  bool is_savepoint; /* and may change its directory */
  bool lends; /* it waits for a program that may, too (protect.h) */
  uint32_t serial; /* another one each time the structure is used again */
  struct process *next;
};

/* Descriptors of new processes are watched by this epoll; the event carries the process. -1: their ends are told otherwise. */
void processes_init(int epoll);
void processes_lock(void);
void processes_unlock(void);
/* The process that thread `tid` belongs to; one that was forked since belongs to its parent's execution. Never NULL. */
struct process *process_of(pid_t tid);
/* The process of this number; NULL when it is not known. */
struct process *process_find(pid_t pid);
/*
 * Notes that thread `tid` of `process` is about to execute a file. Returns the number of the execution, and the one that it
 * replaces, if any.
 */
uint32_t process_execute(struct process *process, pid_t tid, const struct stat *program, uint32_t *replaces);
enum outcome {
  OUTCOME_SETTLED, /* it happened, or nobody can tell */
  OUTCOME_OPEN,
  OUTCOME_LIKELY_FAILED, /* it has, if thread `tid` is still in its call: otherwise it was ended for the execution */
  OUTCOME_FAILED,
};
/* What became of the execution noted last, now that thread `tid` of it makes a call. */
enum outcome process_outcome(struct process *process, pid_t tid);
/* It has failed: all is as before. Returns its number. */
uint32_t process_take_back(struct process *process);
/* The execution that what is being called now belongs to. */
uint32_t process_present(const struct process *process);
/* It has ended, and its descriptor says how when its parent has waited for it: the next event is that. */
void process_await_reaping(struct process *process);
/* Forgets a process that has ended. */
void process_forget(struct process *process);
/* The execution that a live process belongs to, as far as that is known; 0 otherwise. Takes the lock itself. */
uint32_t process_exec(pid_t pid);

#endif
