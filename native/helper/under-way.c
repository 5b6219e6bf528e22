/* The last change that alters something, which is looked at until it is over, and the others. See under-way.h. */
#define _GNU_SOURCE
#include "under-way.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_US = 20, OTHERS = 32 };
/* A call that sleeps longer hangs: in a filesystem that another process of the recording serves, say. It is not waited for again. */
static const uint64_t sleep_ns = 100000000;
/* On a machine that is busy a thread may be kept from running for as long. */
static const uint64_t patience_ns = 2000000000;
/* A thread that has run for so long since it was let go on has left the call, unless it sleeps in it. */
static const uint64_t long_ns = 200000;
/* Unless it should have done what can be seen: another machine may have had the processor meanwhile, which counts as running. */
static const uint64_t longest_ns = 3000000;

struct caller {
  pid_t tid, pid; /* 0: there is none */
  int number;
};

/* Of those that alter something there is never more than one. */
static struct {
  struct caller caller;
  bool shows, existed;
  dev_t device;
  ino_t inode;
  char path[PATH_ROOM];
} last;
static struct caller others[OTHERS];
static size_t other_count;

/* By what it was to do: one look tells, mostly. */
static bool has_effect(void) {
  struct stat stat;
  bool exists = lstat(last.path, &stat) == 0;
  if (exists != last.existed) return true;
  return exists && (stat.st_ino != last.inode || stat.st_dev != last.device);
}

enum where { OUTSIDE, INSIDE, RUNNING };

/* By where the thread is: one that waits for the answer to its next call has left this one, too. */
static enum where where_is(const struct caller *caller) {
  char text[256];
  if (!read_text_file(caller->tid, "syscall", text, sizeof text)) return OUTSIDE;
  if (strncmp(text, "running", 7) == 0) return RUNNING;
  if (atoi(text) != caller->number) return OUTSIDE;
  bool is_named = read_text_file(caller->tid, "wchan", text, sizeof text);
  /* Or for whoever opens the other end of a pipe: it has found what it opens. One that was just woken has no name to tell. */
  bool is_left = strstr(text, "seccomp") != NULL || strstr(text, "wait_for_partner") != NULL || strstr(text, "fifo_open") != NULL;
  return is_named && is_left ? OUTSIDE : INSIDE;
}

/* The time that a thread has run; where the kernel does not tell it, the time of all threads of its process. */
static uint64_t ran_ns(const struct caller *caller) {
  char text[128];
  clockid_t clock;
  struct timespec time;
  if (read_text_file(caller->tid, "schedstat", text, sizeof text)) return strtoull(text, NULL, 10);
  if (clock_getcpuclockid(caller->pid, &clock) != 0 || clock_gettime(clock, &time) != 0) return UINT64_MAX;
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void sleep_shortly(void) {
  static bool is_exact;
  /* Sleeping takes 50 µs longer otherwise. */
  if (!is_exact) is_exact = prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0) == 0;
  usleep(LOOK_US);
}

static void wait_for(const struct caller *caller) {
  bool is_last = caller == &last.caller;
  uint64_t begun = monotonic_ns(), ran = ran_ns(caller), enough_ns = is_last && last.shows ? longest_ns : long_ns;
  while (!is_last || !has_effect()) {
    enum where where = where_is(caller);
    uint64_t now = ran_ns(caller);
    if (where == OUTSIDE || (where == RUNNING && now - ran >= enough_ns)) return;
    if (now == UINT64_MAX || monotonic_ns() - begun > (where == INSIDE ? sleep_ns : patience_ns)) return;
    sleep_shortly();
  }
}

static void settle_others(void) {
  while (other_count > 0) wait_for(&others[--other_count]);
}

/* Who calls again is done with what it called before. */
static void forget_other(pid_t tid) {
  for (size_t i = 0; i < other_count; i++) {
    if (others[i].tid != tid) continue;
    others[i] = others[--other_count];
    return;
  }
}

void under_way_settle(const struct call *call, bool makes_room) {
  if (last.caller.tid != 0 && last.caller.tid != tid_of(call)) wait_for(&last.caller);
  last.caller.tid = 0;
  forget_other(tid_of(call));
  if (makes_room) settle_others();
}

static struct caller caller_of(const struct call *call) {
  return (struct caller){.tid = tid_of(call), .pid = call->process->pid, .number = call->notification->data.nr};
}

void under_way_add(const struct call *call, const struct place *place, bool shows) {
  last.caller = caller_of(call);
  last.shows = shows;
  last.existed = place->known && place->exists;
  last.device = place->stat.st_dev;
  last.inode = place->stat.st_ino;
  /* Of a call that will fail nothing can be seen. */
  memcpy(last.path, place->path, place->known ? place->length : 0);
  last.path[place->known ? place->length : 0] = 0;
}

void under_way_add_other(const struct call *call) {
  if (other_count == OTHERS) settle_others();
  others[other_count++] = caller_of(call);
}
