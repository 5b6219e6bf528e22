/* By what /proc tells of a process's memory and program. See lineage.h. */
#define _GNU_SOURCE
#include "lineage.h"

#include <stdio.h>
#include <sys/stat.h>

#include "tracee.h"

enum { MAX_ENDED = 256, MAX_CANDIDATES = 64 };

static struct process ended[MAX_ENDED];
static size_t next_ended;

uint64_t lineage_image(pid_t pid) {
  /* Addresses of its program, its stack and what the system put there: each execution has its own, and forks copy them. */
  uint8_t words[1024];
  ssize_t length = read_file(pid, "auxv", words, sizeof words);
  uint64_t image = 14695981039346656037u;
  for (ssize_t i = 0; i < length; i++) image = (image ^ words[i]) * 1099511628211u;
  return length <= 0 ? 0 : image;
}

void lineage_ended(const struct process *process) {
  if (!process->executed) return;
  ended[next_ended] = *process;
  next_ended = (next_ended + 1) % MAX_ENDED;
}

/* Processes that an orphan may come from. */
struct candidates {
  const struct process *list[MAX_CANDIDATES];
  size_t count;
};

/* One for each execution. */
static void add(struct candidates *candidates, const struct process *process) {
  for (size_t i = 0; i < candidates->count; i++) {
    if (candidates->list[i]->exec == process->exec) return;
  }
  if (candidates->count < MAX_CANDIDATES) candidates->list[candidates->count++] = process;
}

/* Whether it has the memory of another only because it is about to execute something: it was told, and not done yet. */
static bool is_about_to_execute(const struct candidates *candidates, const struct process *process) {
  for (size_t i = 0; i < candidates->count; i++) {
    if (process->unverified && candidates->list[i]->exec == process->exec_before) return true;
  }
  return false;
}

/* NULL when there is none, or more than one. */
static const struct process *only(const struct candidates *candidates) {
  const struct process *found = NULL;
  for (size_t i = 0; i < candidates->count; i++) {
    if (is_about_to_execute(candidates, candidates->list[i])) continue;
    if (found != NULL) return NULL;
    found = candidates->list[i];
  }
  return found;
}

/* The search: by the memory, which decides, and among those of unknown memory by the program, if only one has it. */
struct search {
  uint64_t image;
  struct stat program;
  struct candidates exact, similar;
};

static void consider(struct search *search, const struct process *process, uint64_t image) {
  bool has_program = process->device == search->program.st_dev && process->inode == search->program.st_ino;
  if (image == search->image) add(&search->exact, process);
  else if (image == 0 && has_program) add(&search->similar, process);
}

bool lineage_find(pid_t orphan, struct process *const *buckets, size_t count, struct process *origin) {
  char file[64];
  struct search search = {.image = lineage_image(orphan)};
  snprintf(file, sizeof file, "/proc/%d/exe", orphan);
  if (search.image == 0 || stat(file, &search.program) != 0) return false;
  for (size_t i = 0; i < count; i++) {
    for (const struct process *process = buckets[i]; process != NULL; process = process->next) {
      if (process->exec != 0) consider(&search, process, lineage_image(process->pid));
    }
  }
  for (size_t i = 0; i < MAX_ENDED; i++) {
    if (ended[i].exec != 0) consider(&search, &ended[i], ended[i].image);
  }
  const struct process *found = only(search.exact.count > 0 ? &search.exact : &search.similar);
  if (found == NULL) return false;
  origin->exec = found->exec;
  origin->parent = found->parent;
  origin->depth = found->depth;
  return true;
}
