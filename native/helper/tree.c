/* Reads /proc as a whole, and signals by descriptor. See tree.h. */
#define _GNU_SOURCE
#include "tree.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "frames.h"
#include "group-signals.h"
#include "ptrace.h"
#include "thaw.h"
#include "tracee.h"

enum { MAX_PASSES = 100, PATIENT_PASSES = 5, THAW_PASSES = 20, PASS_US = 1000, STAT_BYTES = 1024 };

struct member {
  pid_t pid, parent;
  char state;
  bool headless, inside;
};

struct list {
  struct member *members;
  size_t count, room;
};

static pid_t excepted;
static void (*settle)(void);
static struct list frozen; /* whom we have stopped */
static bool is_frozen;
static uint64_t end_ns; /* when those that were asked to end are made to; 0: nobody was asked */
/* What does not even die of SIGKILL within this waits for a device: it is counted as going on. */
static const uint64_t kill_ns = 2000000000;

void tree_init(pid_t except) { excepted = except; }

void tree_settle_by(void (*by)(void)) { settle = by; }

static bool look(pid_t pid, struct member *member) {
  char text[STAT_BYTES];
  if (!read_text_file(pid, "stat", text, sizeof text)) return false;
  /* The name, in parentheses, may hold anything. */
  const char *end = strrchr(text, ')');
  int parent, threads;
  *member = (struct member){.pid = pid};
  const char *format = ") %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d";
  if (end == NULL || sscanf(end, format, &member->state, &parent, &threads) != 3) return false;
  member->parent = parent;
  /* Its first thread has ended, which is all that this file shows, and others go on. */
  member->headless = member->state == 'Z' && threads > 1;
  return true;
}

static bool append(struct list *list, const struct member *member) {
  if (list->count == list->room) {
    size_t room = list->room == 0 ? 256 : list->room * 2;
    struct member *members = realloc(list->members, room * sizeof *members);
    if (members == NULL) return false;
    list->members = members;
    list->room = room;
  }
  list->members[list->count++] = *member;
  return true;
}

static bool holds(const struct list *list, pid_t pid) {
  for (size_t i = 0; i < list->count; i++) {
    if (list->members[i].pid == pid) return true;
  }
  return false;
}

static bool lives(const struct member *member) {
  return member->headless || (member->state != 'Z' && member->state != 'X');
}

/* Moves those to the front whose ancestors lead here, and forgets the others and the dead. Returns how many of these are our children. */
static size_t keep_inside(struct list *list) {
  pid_t self = getpid();
  for (bool grows = true; grows;) {
    grows = false;
    for (size_t i = 0; i < list->count; i++) {
      struct member *member = &list->members[i];
      if (member->inside || member->pid == excepted || member->pid == thaw_keeper()) continue;
      if (member->pid == group_signals_witness()) continue;
      bool inside = member->parent == self;
      for (size_t j = 0; !inside && j < list->count; j++)
        inside = list->members[j].inside && list->members[j].pid == member->parent;
      member->inside = inside;
      grows = grows || inside;
    }
  }
  size_t kept = 0, dead = 0;
  for (size_t i = 0; i < list->count; i++) {
    struct member member = list->members[i];
    if (member.inside && lives(&member)) list->members[kept++] = member;
    else if (member.inside && member.parent == self) dead++;
  }
  list->count = kept;
  return dead;
}

static size_t look_at_all(struct list *list) {
  list->count = 0;
  DIR *directory = opendir("/proc");
  if (directory == NULL) return 0;
  for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
    struct member member;
    pid_t pid = (pid_t)atoi(entry->d_name);
    if (pid > 0 && look(pid, &member) && !append(list, &member)) break;
  }
  closedir(directory);
  return keep_inside(list);
}

/*
 * The result stays valid until the next call. Who ends while we look may have left a child that came too late to be seen; but as
 * a child of ours he stands there, dead, until we ask for his end. Where none has died since the look before, nobody was missed.
 */
static struct list *list_tree(void) {
  static struct list list;
  size_t dead = 0, before;
  do {
    before = dead;
    dead = look_at_all(&list);
  } while (list.count == 0 && dead != before);
  return &list;
}

/* By descriptor, and only if it still is whom we saw: the number may be another's by now. */
static void send(const struct member *member, int signal) {
  int pidfd = (int)syscall(SYS_pidfd_open, member->pid, 0);
  if (pidfd < 0) return;
  struct member now;
  if (look(member->pid, &now) && (now.parent == member->parent || now.parent == getpid()))
    syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0);
  close(pidfd);
}

static bool is_in_clone(pid_t pid) {
  char text[32], *end = text;
  if (!read_text_file(pid, "syscall", text, sizeof text)) return false;
  long number = strtol(text, &end, 10);
  if (end == text) return false;
#ifdef SYS_vfork
  if (number == SYS_vfork) return true;
#endif
  return number == SYS_clone || number == SYS_clone3;
}

/* Whether it waits in a vfork for a child that has stopped. It runs nothing until that goes on, but does not stop either. */
static bool waits_for_stopped(const struct list *list, const struct member *member) {
  if (member->state != 'D') return false;
  for (size_t i = 0; i < list->count; i++) {
    const struct member *child = &list->members[i];
    if (child->parent == member->pid && (child->state == 'T' || child->state == 't')) return is_in_clone(member->pid);
  }
  return false;
}

void tree_freeze(void) {
  is_frozen = true;
  thaw_begin();
  bool was_quiet = false;
  for (int pass = 0; pass < MAX_PASSES; pass++) {
    if (settle != NULL) settle();
    struct list *list = list_tree();
    bool quiet = true;
    for (size_t i = 0; i < list->count; i++) {
      const struct member *member = &list->members[i];
      bool is_ours = holds(&frozen, member->pid), is_others = ptrace_is_stopped(member->pid);
      /* A process that is traced by ptrace looks the same in any of its stops, most of which are over in a moment. */
      bool is_known = is_ours && (member->state == 't' || member->headless || waits_for_stopped(list, member));
      if (member->state == 'T' || is_known || (member->state == 't' && is_others)) continue;
      quiet = false;
      if (is_ours) continue;
      /* It goes on in a moment, or somebody else has just stopped it: the next look tells. */
      if ((member->state == 't' || is_others) && pass < PATIENT_PASSES) continue;
      thaw_note(member->pid);
      send(member, SIGSTOP);
      append(&frozen, member);
    }
    /* Twice: a fork may have been under way while the first one looked. */
    if (quiet && was_quiet) return;
    was_quiet = quiet;
    usleep(PASS_US);
  }
}

/* Whether any that we have stopped still is, or is in another stop for a moment. */
static bool is_any_stopped(void) {
  struct list *list = list_tree();
  for (size_t i = 0; i < list->count; i++) {
    const struct member *member = &list->members[i];
    if ((member->state == 'T' || member->state == 't') && holds(&frozen, member->pid)) return true;
  }
  return false;
}

void tree_thaw(void) {
  if (!is_frozen) return;
  struct list *list = list_tree();
  for (size_t i = 0; i < list->count; i++) {
    if (holds(&frozen, list->members[i].pid)) send(&list->members[i], SIGCONT);
  }
  /* That a traced process had stopped may be told late: as long as we know whom we have stopped, it is not taken for others' work. */
  for (int pass = 0; settle != NULL && pass < THAW_PASSES; pass++) {
    settle();
    if (!is_any_stopped()) break;
    usleep(PASS_US);
  }
  thaw_end();
  frozen.count = 0;
  is_frozen = false;
}

bool tree_is_frozen(void) { return is_frozen; }

size_t tree_members(pid_t *pids, size_t room) {
  const struct list *list = list_tree();
  for (size_t i = 0; i < list->count && i < room; i++) pids[i] = list->members[i].pid;
  return list->count;
}

bool tree_lives(pid_t pid) {
  struct member member;
  return look(pid, &member) && lives(&member);
}

bool tree_is_busy(void) {
  const struct list *list = list_tree();
  for (size_t i = 0; i < list->count; i++) {
    if (list->members[i].state == 'R' || list->members[i].state == 'D') return true;
  }
  return false;
}

bool tree_has_stopped(pid_t pid) { return holds(&frozen, pid); }

static void signal_all(int signal) {
  struct list *list = list_tree();
  for (size_t i = 0; i < list->count; i++) send(&list->members[i], signal);
}

/* All at once, so that none starts another that does not hear of it. They die of the signal, or tidy up, when they go on. */
void tree_end(uint32_t grace_ms) {
  if (end_ns != 0) return;
  tree_freeze();
  signal_all(SIGTERM);
  /* Also to what had been stopped before: it would never take the signal. */
  signal_all(SIGCONT);
  tree_thaw();
  end_ns = monotonic_ns() + (uint64_t)grace_ms * 1000000u;
}

bool tree_is_ending(void) { return end_ns != 0; }

bool tree_has_ended(void) {
  uint64_t now = monotonic_ns();
  bool has_ended = list_tree()->count == 0;
  if (!has_ended && now >= end_ns) {
    tree_freeze();
    signal_all(SIGKILL);
    has_ended = now > end_ns + kill_ns;
  }
  if (has_ended) thaw_end();
  return has_ended;
}
