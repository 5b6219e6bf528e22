/* A short list under a lock. See holds.h. */
#define _GNU_SOURCE
#include "holds.h"

#include <ctype.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>

#include "frames.h"

/* Numbers of changes that are held have this bit; the others are those of executions. */
enum { MAX_HOLDS = 65536 };
static const uint32_t change_bit = 0x80000000u;

struct hold {
  uint64_t key, deadline_ns;
  pid_t pid;
  uint32_t exec;
};
/* Shared with the guard. As many threads may wait; memory is taken, and looked through, only as far as it was ever `used`. */
struct shared {
  _Atomic bool holds_changes;
  size_t used;
  struct hold holds[MAX_HOLDS];
};
static bool starts_with_changes;
static struct shared *shared;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void (*release_key)(uint64_t key);
static const char *held_names;
static _Atomic bool has_given_up;
static uint64_t wait_ns;
static uint32_t last_change;

bool holds_share(void) {
  void *memory = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  shared = memory;
  shared->holds_changes = starts_with_changes;
  return true;
}

void holds_init(void (*release)(uint64_t key), const char *names, uint64_t max_ns) {
  release_key = release;
  held_names = names;
  wait_ns = max_ns;
}

static const char *last_part(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash == NULL ? path : slash + 1;
}

static const char *next_argument(const struct arguments *arguments, const char *at) {
  at += strlen(at) + 1;
  return at < arguments->bytes + arguments->length ? at : NULL;
}

/* Whether an option among the arguments has one of the letters; of long ones, whether `any_long`, or it begins with one. */
static bool has_option(const struct arguments *arguments, const char *letters, size_t count, bool any_long) {
  if (arguments->length == 0) return false;
  for (const char *at = arguments->bytes; (at = next_argument(arguments, at)) != NULL;) {
    if (at[0] != '-') continue;
    if (at[1] == '-' && (any_long || (at[2] != 0 && memchr(letters, at[2], count) != NULL))) return true;
    /* `perl -0777pi`: numbers stand between them, too. */
    for (const char *letter = at + 1; isalnum((unsigned char)*letter); letter++) {
      if (memchr(letters, *letter, count) != NULL) return true;
    }
  }
  return false;
}

/* The one of the words, which have slashes between them, that this is, and how long it is with what belongs to it; or NULL. */
static const char *find_word(const char *wanted, const char *words, size_t length, size_t *part) {
  size_t size = strlen(wanted);
  for (const char *at = words, *end = words + length; size > 0 && at < end; at += *part + 1) {
    *part = strcspn(at, "/,");
    if (strcspn(at, "=/,") == size && memcmp(at, wanted, size) == 0) return at;
  }
  return NULL;
}

/* The first argument behind the options that are among the words, too; `-C=+`: one that has a value. */
static const char *behind_options(const struct arguments *arguments, const char *words, size_t length) {
  size_t part;
  const char *at = arguments->length == 0 ? NULL : next_argument(arguments, arguments->bytes);
  while (at != NULL && *at == '-') {
    const char *option = find_word(at, words, length, &part);
    if (option == NULL) return NULL;
    bool has_value = part > strlen(at);
    at = next_argument(arguments, at);
    if (at != NULL && has_value) at = next_argument(arguments, at);
  }
  return at;
}

/* git is its commands, too, under their own names: `git-upload-pack`. */
static const char *own_name(const struct arguments *arguments) {
  const char *name = arguments->length == 0 ? "" : last_part(arguments->bytes);
  return strncmp(name, "git-", strlen("git-")) == 0 ? name + strlen("git-") : NULL;
}

/* Whether the first argument is a word that does no harm; `branch=dD`: not with one of these options. */
static bool begins_harmless(const struct arguments *arguments, const char *words, size_t length) {
  size_t part, size;
  const char *first = own_name(arguments);
  if (first == NULL) first = behind_options(arguments, words, length);
  const char *word = first == NULL ? NULL : find_word(first, words, length, &part);
  if (word == NULL || (size = strlen(first)) == part) return word != NULL;
  return !has_option(arguments, word + size + 1, part - size - 1, false);
}

/* Whether an argument is one of the words, by the last part of its path. */
static bool names_one(const struct arguments *arguments, const char *words, size_t length) {
  size_t part;
  if (arguments->length == 0) return false;
  for (const char *at = arguments->bytes; (at = next_argument(arguments, at)) != NULL;) {
    if (find_word(last_part(at), words, length, &part) != NULL) return true;
  }
  return false;
}

static bool is_listed(const char *path, const struct arguments *arguments);

static bool is_wanted(const struct arguments *arguments, const char *condition, size_t length) {
  if (arguments == NULL || length == 0 || !arguments->complete) return true;
  if (*condition == '/') return !begins_harmless(arguments, condition + 1, length - 1);
  if (*condition == '?') return names_one(arguments, condition + 1, length - 1);
  /* An interpreter may be given the script of a program that is listed: `python3 /usr/bin/pip`. */
  const char *first = arguments->length == 0 ? NULL : next_argument(arguments, arguments->bytes);
  return has_option(arguments, condition + 1, length - 1, true) || (first != NULL && is_listed(first, NULL));
}

/* `arguments`: NULL for any. */
static bool is_listed(const char *path, const struct arguments *arguments) {
  const char *name = last_part(path);
  size_t length = strlen(name);
  for (const char *at = held_names; *at != 0 && length > 0;) {
    size_t part = strcspn(at, ","), named = strcspn(at, ",=/?");
    bool is_meant = (named == length && memcmp(at, name, length) == 0) || (part == 1 && *at == '*');
    if (is_meant && is_wanted(arguments, at + named, part - named)) return true;
    at += part;
    if (*at == ',') at++;
  }
  return false;
}

bool holds_want(const char *program, const struct arguments *arguments) {
  if (held_names == NULL || has_given_up) return false;
  return is_listed(program, arguments) || (arguments->length > 0 && is_listed(arguments->bytes, arguments));
}

/* Under the lock. `deadline_ns`: 0 for none. */
static bool add(uint64_t key, pid_t pid, uint32_t number, uint64_t deadline_ns) {
  for (size_t i = 0; i < MAX_HOLDS; i++) {
    struct hold *hold = &shared->holds[i];
    if (hold->exec != 0) continue;
    hold->key = key;
    hold->pid = pid;
    hold->deadline_ns = deadline_ns;
    if (i >= shared->used) shared->used = i + 1;
    hold->exec = number;
    return true;
  }
  return false;
}

bool holds_add(uint64_t key, pid_t pid, uint32_t exec) {
  pthread_mutex_lock(&lock);
  bool added = !has_given_up && add(key, pid, exec, monotonic_ns() + wait_ns);
  pthread_mutex_unlock(&lock);
  return added;
}

bool holds_add_first(uint64_t key, pid_t pid, uint32_t exec) {
  pthread_mutex_lock(&lock);
  bool added = shared->holds_changes && add(key, pid, exec, 0);
  pthread_mutex_unlock(&lock);
  return added;
}

void holds_start_changes(void) { starts_with_changes = true; }
bool holds_want_changes(void) { return shared->holds_changes; }

uint32_t holds_add_change(uint64_t key, pid_t pid) {
  pthread_mutex_lock(&lock);
  uint32_t number = ++last_change | change_bit;
  bool added = shared->holds_changes && add(key, pid, number, 0);
  pthread_mutex_unlock(&lock);
  return added ? number : 0;
}

/* A call may wait for two: the state before the run, and the guard of its execution, which could not be held itself. */
static bool is_held_twice(size_t i) {
  for (size_t j = 0; j < shared->used; j++) {
    if (j != i && shared->holds[j].exec != 0 && shared->holds[j].key == shared->holds[i].key) return true;
  }
  return false;
}

static void let_go(size_t i) {
  if (!is_held_twice(i)) release_key(shared->holds[i].key);
  shared->holds[i].exec = 0;
}

void holds_release(uint32_t number) {
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < shared->used; i++) {
    if (shared->holds[i].exec == number && number != 0) let_go(i);
  }
  pthread_mutex_unlock(&lock);
}

void holds_end_changes(void) {
  pthread_mutex_lock(&lock);
  shared->holds_changes = false;
  for (size_t i = 0; i < shared->used; i++) {
    if (shared->holds[i].exec != 0 && shared->holds[i].deadline_ns == 0) let_go(i);
  }
  pthread_mutex_unlock(&lock);
}

void holds_give_up(void) {
  pthread_mutex_lock(&lock);
  has_given_up = true;
  shared->holds_changes = false;
  for (size_t i = 0; i < shared->used; i++) {
    if (shared->holds[i].exec != 0) let_go(i);
  }
  pthread_mutex_unlock(&lock);
}

void holds_each(void (*visit)(uint64_t key, pid_t pid)) {
  for (size_t i = 0; i < shared->used; i++) {
    if (shared->holds[i].exec != 0) visit(shared->holds[i].key, shared->holds[i].pid);
  }
}

size_t holds_waiting(pid_t *pids, size_t room) {
  size_t count = 0;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < shared->used && count < room; i++) {
    if (shared->holds[i].exec != 0) pids[count++] = shared->holds[i].pid;
  }
  pthread_mutex_unlock(&lock);
  return count;
}

uint64_t holds_deadline(void) {
  uint64_t first = 0;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < shared->used; i++) {
    if (shared->holds[i].exec != 0 && shared->holds[i].deadline_ns != 0 && (first == 0 || shared->holds[i].deadline_ns < first)) first = shared->holds[i].deadline_ns;
  }
  pthread_mutex_unlock(&lock);
  return first;
}

uint32_t holds_expire(void) {
  uint32_t exec = 0;
  uint64_t now = monotonic_ns();
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < shared->used && exec == 0; i++) {
    if (shared->holds[i].exec == 0 || shared->holds[i].deadline_ns == 0 || shared->holds[i].deadline_ns > now) continue;
    exec = shared->holds[i].exec;
    let_go(i);
  }
  pthread_mutex_unlock(&lock);
  return exec;
}
