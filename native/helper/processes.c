/* A hash table of processes, and a small cache from threads to them. See processes.h. */
#define _GNU_SOURCE
#include "processes.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "frames.h"
#include "lineage.h"
#include "pidfd.h"
#include "tracee.h"

enum { BUCKETS = 4096, THREADS = 4096, MAX_ANCESTORS = 64 };
/* A number may mean another thread after this long. */
static const uint64_t trust_ns = 500000000;

static struct process *buckets[BUCKETS];
static struct {
  pid_t tid;
  struct process *process;
  uint32_t serial;
  uint64_t seen_ns;
} threads[THREADS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int epoll_fd = -1;
static uint32_t last_exec;
static struct process *unused;
/* What cannot be traced to anything: exec 0, the run itself. */
static struct process nobody = {.pidfd = -1};

void processes_init(int epoll) { epoll_fd = epoll; }
void processes_lock(void) { pthread_mutex_lock(&lock); }
void processes_unlock(void) { pthread_mutex_unlock(&lock); }

struct process *process_find(pid_t pid) {
  for (struct process *process = buckets[pid % BUCKETS]; process != NULL; process = process->next) {
    if (process->pid == pid) return process;
  }
  return NULL;
}

/* `pidfd`: its descriptor, which is ours to close, or -1. */
static struct process *add(pid_t pid, int pidfd, const struct process *parent) {
  struct process *process = unused;
  if (process != NULL) unused = process->next;
  else process = calloc(1, sizeof *process);
  if (process == NULL || epoll_fd < 0) {
    if (pidfd >= 0) close(pidfd);
    pidfd = -1;
  }
  if (process == NULL) return &nobody;
  *process = (struct process){.pid = pid, .pidfd = -1, .serial = process->serial + 1, .next = buckets[pid % BUCKETS]};
  if (parent != NULL) {
    process->exec = parent->exec;
    process->parent = parent->parent;
    process->depth = parent->depth;
    process->other_mounts = parent->other_mounts;
  }
  buckets[pid % BUCKETS] = process;
  if (epoll_fd < 0) return process;
  /* Its end must be noticed, or its number would be taken for it when another process gets it. */
  process->pidfd = pidfd >= 0 ? pidfd : pidfd_of(pid);
  if (process->pidfd >= 0) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = process};
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, process->pidfd, &event);
  }
  return process;
}

/* The nearest process above that is known; processes in between have executed nothing. */
static struct process *find_ancestor(pid_t parent) {
  pid_t self = getpid();
  for (int i = 0; i < MAX_ANCESTORS && parent > 1 && parent != self; i++) {
    struct process *process = process_find(parent);
    if (process != NULL) return process;
    pid_t group;
    if (!find_parents(parent, &group, &parent)) break;
  }
  return NULL;
}

/* One that its parents left to us has the memory of what forked it, and nothing else to know it by. */
static struct process *add_found(pid_t pid, int pidfd, pid_t parent) {
  struct process origin = {0}, *above = find_ancestor(parent);
  bool is_first = last_exec == 0;
  if (above == NULL && !is_first && lineage_find(pid, buckets, BUCKETS, &origin)) above = &origin;
  struct process *process = add(pid, pidfd, above);
  if (process != &nobody) process->detached = above == NULL && !is_first;
  return process;
}

struct process *process_of(pid_t tid) {
  uint64_t now = monotonic_ns();
  size_t slot = (size_t)tid % THREADS;
  struct process *process = threads[slot].process;
  bool is_known = threads[slot].tid == tid && process != NULL && process->serial == threads[slot].serial;
  if (is_known && now - threads[slot].seen_ns < trust_ns) return process;
  pid_t group, parent;
  int pidfd = pidfd_of(tid);
  bool is_alive = (pidfd >= 0 && pidfd_parents(pidfd, &group, &parent)) || find_parents(tid, &group, &parent);
  process = is_alive ? process_find(group) : &nobody;
  if (process == NULL) process = add_found(group, pidfd, parent);
  else if (pidfd >= 0) close(pidfd);
  if (!is_alive) return process;
  process->ppid = parent;
  threads[slot].tid = tid;
  threads[slot].process = process;
  threads[slot].serial = process->serial;
  threads[slot].seen_ns = now;
  return process;
}

uint32_t process_execute(struct process *process, pid_t tid, const struct stat *program, uint32_t *replaces) {
  process->exec_before = process->exec;
  process->parent_before = process->parent;
  process->depth_before = process->depth;
  process->executed_before = process->executed;
  *replaces = process->executed ? process->exec : 0;
  if (!process->executed) {
    process->parent = process->exec;
    process->depth = process->exec == 0 ? 0 : process->depth + 1;
  }
  /* It may have left our mounts since its last execution, as a sandbox does before it becomes the program inside. */
  process->other_mounts = process->mounts_known = false;
  process->exec = ++last_exec;
  process->executed = process->unverified = true;
  process->pending = false;
  process->executes = tid;
  process->executed_ns = monotonic_ns();
  process->image = 0;
  process->is_savepoint = process->lends = false;
  process->device = program->st_dev;
  process->inode = program->st_ino;
  return process->exec;
}

/* Whether it is the program by now that was to be executed; `known`: whether that can be told. */
static bool has_become(const struct process *process, bool *known) {
  char file[64];
  struct stat now;
  snprintf(file, sizeof file, "/proc/%d/exe", process->pid);
  *known = stat(file, &now) == 0;
  return *known && now.st_dev == process->device && now.st_ino == process->inode;
}

static bool has_thread(const struct process *process, pid_t tid) {
  char file[64];
  snprintf(file, sizeof file, "/proc/%d/task/%d", process->pid, tid);
  return access(file, F_OK) == 0;
}

enum outcome process_outcome(struct process *process, pid_t tid) {
  if (!process->unverified) return OUTCOME_SETTLED;
  bool known, happened = has_become(process, &known);
  if (!known) {
    /* The first thread is ended for an execution before the others are: the one that executes has not got its number yet. */
    bool is_open = process->executes != process->pid && tid != process->executes && has_thread(process, process->executes);
    if (is_open) process->pending = true;
    return is_open ? OUTCOME_OPEN : OUTCOME_SETTLED;
  }
  if (!happened && tid != process->executes) {
    /* Another thread, which goes on until the system ends it for the execution, or after that has failed. */
    process->pending = true;
    if (has_thread(process, process->executes)) return OUTCOME_OPEN;
    /* The one that executes takes the number of the first when it succeeds. */
    happened = has_become(process, &known);
    if (!happened) return OUTCOME_LIKELY_FAILED;
  }
  if (!happened) return OUTCOME_FAILED;
  process->unverified = process->pending = false;
  /* Once for each execution that changes a file: what it forks may outlive it. */
  process->image = lineage_image(process->pid);
  return OUTCOME_SETTLED;
}

uint32_t process_take_back(struct process *process) {
  uint32_t undone = process->exec;
  process->unverified = process->pending = false;
  process->exec = process->exec_before;
  process->parent = process->parent_before;
  process->depth = process->depth_before;
  process->executed = process->executed_before;
  return undone;
}

uint32_t process_present(const struct process *process) {
  return process->pending ? process->exec_before : process->exec;
}

void process_await_reaping(struct process *process) {
  struct epoll_event event = {.events = 0 /* but EPOLLHUP, always */, .data.ptr = process};
  epoll_ctl(epoll_fd, EPOLL_CTL_MOD, process->pidfd, &event);
}

void process_forget(struct process *process) {
  struct process **at = &buckets[process->pid % BUCKETS];
  while (*at != NULL && *at != process) at = &(*at)->next;
  if (*at != NULL) *at = process->next;
  lineage_ended(process);
  if (process->pidfd >= 0) close(process->pidfd);
  process->serial++;
  process->next = unused;
  unused = process;
}

uint32_t process_exec(pid_t pid) {
  processes_lock();
  const struct process *process = process_find(pid);
  uint32_t exec = process == NULL ? 0 : process->exec;
  processes_unlock();
  return exec;
}
