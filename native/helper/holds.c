/* A short list under a lock. See holds.h. */
#define _GNU_SOURCE
#include "holds.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "frames.h"

/* Numbers of changes that are held have this bit; the others are those of executions. */
enum { MAX_HOLDS = 1024 };
static const uint32_t change_bit = 0x80000000u;

struct hold {
  uint64_t key, deadline_ns;
  uint32_t exec;
};
/* Shared with the guard. */
static struct hold *holds;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void (*release_key)(uint64_t key);
static const char *held_names;
static uint64_t wait_ns;
static bool holds_changes;
static uint32_t last_change;

bool holds_share(void) {
  void *memory = mmap(NULL, MAX_HOLDS * sizeof *holds, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  holds = memory;
  return true;
}

void holds_init(void (*release)(uint64_t key), const char *names, uint64_t max_ns) {
  release_key = release;
  held_names = names;
  wait_ns = max_ns;
}

static bool is_listed(const char *path) {
  const char *slash = strrchr(path, '/');
  const char *name = slash == NULL ? path : slash + 1;
  size_t length = strlen(name);
  if (length == 0) return false;
  for (const char *at = held_names; *at != 0;) {
    size_t part = strcspn(at, ",");
    if ((part == length && memcmp(at, name, length) == 0) || (part == 1 && *at == '*')) return true;
    at += part;
    if (*at == ',') at++;
  }
  return false;
}

bool holds_want(const char *program, const char *argument) {
  return held_names != NULL && (is_listed(program) || is_listed(argument));
}

/* Under the lock. `deadline_ns`: 0 for none. */
static bool add(uint64_t key, uint32_t number, uint64_t deadline_ns) {
  for (size_t i = 0; i < MAX_HOLDS; i++) {
    if (holds[i].exec != 0) continue;
    holds[i].key = key;
    holds[i].deadline_ns = deadline_ns;
    holds[i].exec = number;
    return true;
  }
  return false;
}

bool holds_add(uint64_t key, uint32_t exec) {
  pthread_mutex_lock(&lock);
  bool added = held_names != NULL && add(key, exec, monotonic_ns() + wait_ns);
  pthread_mutex_unlock(&lock);
  return added;
}

bool holds_add_first(uint64_t key, uint32_t exec) {
  pthread_mutex_lock(&lock);
  bool added = holds_changes && add(key, exec, 0);
  pthread_mutex_unlock(&lock);
  return added;
}

void holds_start_changes(void) { holds_changes = true; }
bool holds_want_changes(void) { return holds_changes; }

uint32_t holds_add_change(uint64_t key) {
  pthread_mutex_lock(&lock);
  uint32_t number = ++last_change | change_bit;
  bool added = holds_changes && add(key, number, 0);
  pthread_mutex_unlock(&lock);
  return added ? number : 0;
}

static void let_go(size_t i) {
  release_key(holds[i].key);
  holds[i].exec = 0;
}

void holds_release(uint32_t number) {
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < MAX_HOLDS; i++) {
    if (holds[i].exec == number && number != 0) let_go(i);
  }
  pthread_mutex_unlock(&lock);
}

void holds_end_changes(void) {
  pthread_mutex_lock(&lock);
  holds_changes = false;
  for (size_t i = 0; i < MAX_HOLDS; i++) {
    if (holds[i].exec != 0 && holds[i].deadline_ns == 0) let_go(i);
  }
  pthread_mutex_unlock(&lock);
}

void holds_give_up(void) {
  pthread_mutex_lock(&lock);
  held_names = NULL;
  holds_changes = false;
  for (size_t i = 0; i < MAX_HOLDS; i++) {
    if (holds[i].exec != 0) let_go(i);
  }
  pthread_mutex_unlock(&lock);
}

uint64_t holds_deadline(void) {
  uint64_t first = 0;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < MAX_HOLDS; i++) {
    if (holds[i].exec != 0 && holds[i].deadline_ns != 0 && (first == 0 || holds[i].deadline_ns < first)) first = holds[i].deadline_ns;
  }
  pthread_mutex_unlock(&lock);
  return first;
}

uint32_t holds_expire(void) {
  uint32_t exec = 0;
  uint64_t now = monotonic_ns();
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < MAX_HOLDS && exec == 0; i++) {
    if (holds[i].exec == 0 || holds[i].deadline_ns == 0 || holds[i].deadline_ns > now) continue;
    exec = holds[i].exec;
    let_go(i);
  }
  pthread_mutex_unlock(&lock);
  return exec;
}
