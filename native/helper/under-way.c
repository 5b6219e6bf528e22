/* The last change, which is looked at until it is over: there is never more than one. See under-way.h. */
#define _GNU_SOURCE
#include "under-way.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_US = 20 };
/* A call that sleeps longer hangs: in a filesystem that another process of the recording serves, say. It is not waited for again. */
static const uint64_t sleep_ns = 100000000;
/* On a machine that is busy a process may be kept from running for as long. */
static const uint64_t patience_ns = 2000000000;
/* A process that has run for so long since it was let go on has left the call, unless it sleeps in it. */
static const uint64_t long_ns = 200000;

static struct {
  pid_t tid, pid; /* 0: there is none */
  int number;
  bool existed;
  dev_t device;
  ino_t inode;
  char path[PATH_ROOM];
} last;

/* By what it was to do: one look tells, mostly. */
static bool has_effect(void) {
  struct stat stat;
  bool exists = lstat(last.path, &stat) == 0;
  if (exists != last.existed) return true;
  return exists && (stat.st_ino != last.inode || stat.st_dev != last.device);
}

enum where { OUTSIDE, INSIDE, RUNNING };

/* By where the thread is: one that waits for the answer to its next call has left this one, too. */
static enum where where_is(void) {
  char text[256];
  if (!read_text_file(last.tid, "syscall", text, sizeof text)) return OUTSIDE;
  if (strncmp(text, "running", 7) == 0) return RUNNING;
  if (atoi(text) != last.number) return OUTSIDE;
  bool is_named = read_text_file(last.tid, "wchan", text, sizeof text);
  return is_named && strstr(text, "seccomp") != NULL ? OUTSIDE : INSIDE;
}

/* The time that all threads of a process have run. */
static uint64_t ran_ns(pid_t pid) {
  clockid_t clock;
  struct timespec time;
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) return UINT64_MAX;
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void sleep_shortly(void) {
  static bool is_exact;
  /* Sleeping takes 50 µs longer otherwise. */
  if (!is_exact) is_exact = prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0) == 0;
  usleep(LOOK_US);
}

static void wait_for(void) {
  uint64_t begun = monotonic_ns(), ran = ran_ns(last.pid);
  while (!has_effect()) {
    enum where where = where_is();
    uint64_t now = ran_ns(last.pid);
    if (where == OUTSIDE || (where == RUNNING && now - ran >= long_ns)) return;
    if (now == UINT64_MAX || monotonic_ns() - begun > (where == INSIDE ? sleep_ns : patience_ns)) return;
    sleep_shortly();
  }
}

void under_way_settle(const struct call *call) {
  if (last.tid != 0 && last.tid != tid_of(call)) wait_for();
  last.tid = 0;
}

void under_way_add(const struct call *call, const struct place *place) {
  last.tid = tid_of(call);
  last.pid = call->process->pid;
  last.number = call->notification->data.nr;
  last.existed = place->known && place->exists;
  last.device = place->stat.st_dev;
  last.inode = place->stat.st_ino;
  /* Of a call that will fail nothing can be seen. */
  memcpy(last.path, place->path, place->known ? place->length : 0);
  last.path[place->known ? place->length : 0] = 0;
}
