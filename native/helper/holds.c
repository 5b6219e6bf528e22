/* A short list under a lock. See holds.h. */
#define _GNU_SOURCE
#include "holds.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "frames.h"

enum { MAX_HOLDS = 64 };

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

bool holds_add(uint64_t key, uint32_t exec) {
  bool added = false;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < MAX_HOLDS && !added && held_names != NULL; i++) {
    if (holds[i].exec != 0) continue;
    holds[i].key = key;
    holds[i].deadline_ns = monotonic_ns() + wait_ns;
    holds[i].exec = exec;
    added = true;
  }
  pthread_mutex_unlock(&lock);
  return added;
}

static void let_go(size_t i) {
  release_key(holds[i].key);
  holds[i].exec = 0;
}

void holds_release(uint32_t exec) {
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < MAX_HOLDS; i++) {
    if (holds[i].exec == exec && exec != 0) let_go(i);
  }
  pthread_mutex_unlock(&lock);
}

void holds_give_up(void) {
  pthread_mutex_lock(&lock);
  held_names = NULL;
  for (size_t i = 0; i < MAX_HOLDS; i++) {
    if (holds[i].exec != 0) let_go(i);
  }
  pthread_mutex_unlock(&lock);
}

uint64_t holds_deadline(void) {
  uint64_t first = 0;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < MAX_HOLDS; i++) {
    if (holds[i].exec != 0 && (first == 0 || holds[i].deadline_ns < first)) first = holds[i].deadline_ns;
  }
  pthread_mutex_unlock(&lock);
  return first;
}

uint32_t holds_expire(void) {
  uint32_t exec = 0;
  uint64_t now = monotonic_ns();
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < MAX_HOLDS && exec == 0; i++) {
    if (holds[i].exec == 0 || holds[i].deadline_ns > now) continue;
    exec = holds[i].exec;
    let_go(i);
  }
  pthread_mutex_unlock(&lock);
  return exec;
}
