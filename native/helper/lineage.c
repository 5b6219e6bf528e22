/* By what /proc tells of a process's memory and program. See lineage.h. */
#define _GNU_SOURCE
#include "lineage.h"

#include <stdio.h>
#include <sys/stat.h>

#include "tracee.h"

enum { MAX_ENDED = 256 };

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

/* The search: by the memory, which decides, and among those of unknown memory by the program, if only one has it. */
struct search {
  uint64_t image;
  struct stat program;
  struct process exact, similar;
  unsigned exact_count, similar_count;
};

static void consider(struct search *search, const struct process *process, uint64_t image) {
  bool is_known = search->exact_count > 0 && search->exact.exec == process->exec;
  if (image != 0 && image == search->image && !is_known) {
    search->exact = *process;
    search->exact_count++;
  }
  bool has_program = process->device == search->program.st_dev && process->inode == search->program.st_ino;
  if (image != 0 || !has_program || (search->similar_count > 0 && search->similar.exec == process->exec)) return;
  search->similar = *process;
  search->similar_count++;
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
  bool is_exact = search.exact_count == 1;
  if (!is_exact && (search.exact_count > 1 || search.similar_count != 1)) return false;
  const struct process *found = is_exact ? &search.exact : &search.similar;
  origin->exec = found->exec;
  origin->parent = found->parent;
  origin->depth = found->depth;
  return true;
}
