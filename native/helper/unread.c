/* A short list, and a thread that looks at it while there is something to wait for. See unread.h. */
#define _GNU_SOURCE
#include "unread.h"

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "executions.h"
#include "git-env.h"
#include "holds.h"
#include "lineage.h"

enum { STAT_ROOM = 1024, NAME_ROOM = 64, FORKED = 0x40 /* PF_FORKNOEXEC: has executed nothing since it was forked */ };
static const struct timespec nap = {.tv_nsec = 5000};
/* How long it is looked almost without a pause, with short ones, and at all: whoever is not seen to execute by then is not waited for. */
static const uint64_t at_once_ns = 2000000, soon_ns = 20000000, longest_ns = 1000000000;
enum { SOON_US = 20, LATER_US = 5000 };
/* Its arguments come a moment after it has become another program. */
static const uint64_t settled_ns = 2000000;

/* What everybody may know of a process. */
struct look {
  bool has_ended, forked;
  char name[NAME_ROOM];
  unsigned long code_pages;
  uint64_t image; /* of lineage.h; 0 while its memory is shut */
};

struct unread {
  struct unread *next;
  struct process *process;
  pid_t tid;
  struct look before;
  uint64_t noted_ns, happened_ns;
  uint32_t exec;
  struct frame *waiting; /* what is to be told of it, if it is to be guarded */
};

static struct unread *list;
static const struct notifier *notifier;
static sem_t noted;

bool unread_any(void) { return list != NULL; }

static bool look_at(pid_t pid, struct look *look) {
  char text[STAT_ROOM], state;
  unsigned flags;
  if (!read_text_file(pid, "stat", text, sizeof text)) return false;
  const char *name = strchr(text, '('), *end = strrchr(text, ')');
  if (name == NULL || end == NULL) return false;
  if (sscanf(end + 1, " %c %*d %*d %*d %*d %*d %u", &state, &flags) != 2) return false;
  *look = (struct look){.has_ended = state == 'Z' || state == 'X', .forked = (flags & FORKED) != 0};
  snprintf(look->name, sizeof look->name, "%.*s", (int)(end - name - 1), name + 1);
  if (read_text_file(pid, "statm", text, sizeof text)) sscanf(text, "%*u %*u %*u %lu", &look->code_pages);
  look->image = look->has_ended ? 0 : lineage_image(pid);
  return true;
}

/* A fork that executes is certain. Of another one, what it becomes has another memory, and mostly another name or size. */
static bool has_happened(const struct look *before, const struct look *now) {
  if (before->forked) return !now->forked;
  if (strcmp(before->name, now->name) != 0) return true;
  if (now->has_ended) return false;
  return before->code_pages != now->code_pages || (now->image != 0 && now->image != before->image);
}

static void drop(struct unread **at) {
  struct unread *unread = *at;
  *at = unread->next;
  free(unread->waiting);
  free(unread);
}

static void tell_lost(struct stream *stream, struct frame *frame, pid_t pid) {
  frame_begin(frame, FRAME_LOST, 0, (uint32_t)pid);
  frame_flag(frame, LOST_EXECUTION);
  frame_number(frame, FIELD_NUMBER, 1);
  stream_put(stream, frame);
}

static void tell_waiting(struct unread *unread) {
  if (unread->waiting == NULL) return;
  stream_put(notifier->stream, unread->waiting);
  free(unread->waiting);
  unread->waiting = NULL;
}

/* Tells what it has become. Returns whether that is done; not if it is to be guarded, and `may_wait`. */
static bool tell(struct unread *unread, struct frame *frame, uint64_t image, bool may_wait) {
  struct process *process = unread->process;
  struct executed executed;
  unread->exec = frame_executed(frame, process, notifier->privileges_off, &executed);
  process->image = image;
  if (process->detached) frame_flag(frame, FLAG_DETACHED);
  if (may_wait && holds_want(executed.program, &executed.arguments) && (unread->waiting = malloc(sizeof *frame)) != NULL) {
    if (names_git(executed.program) || names_git(executed.arguments.bytes)) put_own_git_env(frame, process->pid);
    unread->waiting->length = frame->length;
    memcpy(unread->waiting->bytes, frame->bytes, frame->length);
    return false;
  }
  stream_put(notifier->stream, frame);
  return true;
}

/* Thread `tid`, a child of `parent`, makes a call; 0 when none does. Returns whether it is done with. */
static bool settle(struct unread *unread, struct frame *frame, pid_t tid, pid_t parent) {
  struct look now;
  char first;
  pid_t pid = unread->process->pid;
  uint64_t now_ns = monotonic_ns();
  bool is_over = now_ns - unread->noted_ns > longest_ns;
  if (unread->exec != 0) {
    if (is_over) tell_waiting(unread);
    return is_over;
  }
  /* What has ended otherwise is settled by its end. */
  bool is_there = look_at(pid, &now);
  if (!is_there || !has_happened(&unread->before, &now)) {
    /* Refused, if the thread calls again; others go on until it has happened. */
    bool is_refused = is_there && tid == unread->tid;
    if (is_over && !is_refused) tell_lost(notifier->stream, frame, pid);
    return is_over || is_refused;
  }
  if (now.has_ended) return tell(unread, frame, 0, false);
  if (unread->happened_ns == 0) unread->happened_ns = now_ns;
  bool is_ready = tid == unread->tid || parent == pid || read_file(pid, "cmdline", &first, 1) > 0;
  if (!is_ready && now_ns - unread->happened_ns < settled_ns) return false;
  return tell(unread, frame, now.image, true);
}

/* Returns when the youngest was noted that is not done with; 0: there is none. */
static uint64_t settle_all(struct frame *frame, pid_t tid, pid_t parent) {
  uint64_t youngest_ns = 0;
  for (struct unread **at = &list; *at != NULL;) {
    struct unread *unread = *at;
    if (settle(unread, frame, tid, parent)) {
      drop(at);
      continue;
    }
    if (unread->noted_ns > youngest_ns) youngest_ns = unread->noted_ns;
    at = &unread->next;
  }
  return youngest_ns;
}

void unread_settle(struct frame *frame, pid_t tid) {
  pid_t group, parent;
  if (find_parents(tid, &group, &parent)) settle_all(frame, tid, parent);
}

void unread_watch(const struct call *call) {
  struct pollfd next = {.fd = call->notifier->listener, .events = POLLIN};
  uint64_t youngest_ns;
  prctl(PR_SET_TIMERSLACK, 1);
  /* Who wakes from a sleep comes before who computes, where processors are few. */
  do {
    processes_lock();
    youngest_ns = settle_all(call->frame, 0, 0);
    processes_unlock();
  } while (monotonic_ns() < youngest_ns + at_once_ns && ppoll(&next, 1, &nap, NULL) == 0);
}

static void *look_loop(void *unused) {
  static struct frame frame;
  (void)unused;
  /* Else a short rest takes three times as long. */
  prctl(PR_SET_TIMERSLACK, 1);
  for (;;) {
    processes_lock();
    uint64_t youngest_ns = settle_all(&frame, 0, 0);
    processes_unlock();
    if (youngest_ns == 0) sem_wait(&noted);
    else usleep(monotonic_ns() < youngest_ns + soon_ns ? SOON_US : LATER_US);
  }
  return NULL;
}

static bool start_looking(const struct notifier *of) {
  pthread_t thread;
  if (notifier != NULL) return true;
  if (sem_init(&noted, 0, 0) != 0 || pthread_create(&thread, NULL, look_loop, NULL) != 0) return false;
  pthread_detach(thread);
  notifier = of;
  return true;
}

void unread_note(const struct call *call) {
  struct unread *unread = calloc(1, sizeof *unread);
  struct process *process = call->process;
  if (unread == NULL || process->pid == 0 || !look_at(process->pid, &unread->before) || !start_looking(call->notifier)) {
    free(unread);
    tell_lost(call->notifier->stream, call->frame, process->pid);
    return;
  }
  if (unread->before.image == 0) unread->before.image = process->image;
  unread->process = process;
  unread->tid = tid_of(call);
  unread->noted_ns = monotonic_ns();
  unread->next = list;
  list = unread;
  sem_post(&noted);
}

bool unread_hold(const struct call *call, bool may_hold) {
  bool held = false;
  for (struct unread **at = &list; *at != NULL;) {
    struct unread *unread = *at;
    if (unread->waiting == NULL || (unread->process != call->process && unread->exec != call->process->exec)) {
      at = &unread->next;
      continue;
    }
    bool is_held = unread->process == call->process && may_hold && holds_add(call->notification->id, tid_of(call), unread->exec);
    if (is_held) frame_flag(unread->waiting, FLAG_HELD);
    tell_waiting(unread);
    /* Somebody waits for it. */
    if (is_held) stream_flush(notifier->stream);
    held = held || is_held;
    drop(at);
  }
  return held;
}

/* By convention of shells and of posix_spawn: not found, or found and refused. */
static bool says_nothing_executed(const int *status) {
  return status != NULL && WIFEXITED(*status) && (WEXITSTATUS(*status) == 127 || WEXITSTATUS(*status) == 126);
}

void unread_end(struct frame *frame, const struct process *process, const int *status) {
  struct look last;
  for (struct unread **at = &list; *at != NULL;) {
    struct unread *unread = *at;
    if (unread->process != process) {
      at = &unread->next;
      continue;
    }
    if (unread->exec != 0) tell_waiting(unread);
    else if (!look_at(process->pid, &last) || !last.has_ended) {
      if (!says_nothing_executed(status)) tell_lost(notifier->stream, frame, process->pid);
    } else if (has_happened(&unread->before, &last)) tell(unread, frame, 0, false);
    drop(at);
  }
}
