/* By what /proc tells of a process's memory and program. See lineage.h. */
#define _GNU_SOURCE
#include "lineage.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_ENDED = 256, CODE_FIELD = 26, STACK_FIELD = 28, FIRST_FIELD = 3 };

static struct process ended[MAX_ENDED];
static size_t next_ended;

uint64_t lineage_image(pid_t pid) {
  char file[64], text[2048];
  snprintf(file, sizeof file, "/proc/%d/stat", pid);
  int fd = open(file, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t length = read(fd, text, sizeof text - 1);
  close(fd);
  if (length <= 0) return 0;
  text[length] = 0;
  /* The name of the program, in brackets, may hold anything. */
  const char *at = strrchr(text, ')');
  uint64_t code = 0, stack = 0;
  for (int field = FIRST_FIELD; at != NULL && field <= STACK_FIELD; field++) {
    at = strchr(at + 1, ' ');
    if (at == NULL) return 0;
    if (field == CODE_FIELD) code = strtoull(at + 1, NULL, 10);
    if (field == STACK_FIELD) stack = strtoull(at + 1, NULL, 10);
  }
  return stack == 0 ? 0 : stack ^ (code << 20);
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
