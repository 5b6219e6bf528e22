/* From memory before an execution, from /proc after it. See git-env.h. */
#define _GNU_SOURCE
#include "git-env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executions.h"
#include "tracee.h"

enum { ENV_BYTES = 2 * PATH_ROOM };

bool names_git(const char *path) {
  const char *slash = strrchr(path, '/');
  return strcmp(slash == NULL ? path : slash + 1, "git") == 0;
}

/* By the beginning of `NAME=value`, of which there are `length` bytes. */
static bool is_wanted(const char *start, size_t length) {
  static const char *const names[] = {"GIT_DIR=", "GIT_WORK_TREE="};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    size_t wanted = strlen(names[i]);
    if (length >= wanted && memcmp(start, names[i], wanted) == 0) return true;
  }
  return false;
}

void put_git_env(struct frame *frame, pid_t tid, uint64_t address, size_t word) {
  static char bytes[ENV_BYTES];
  char start[16];
  size_t length = 0;
  for (size_t i = 0; i < MAX_ARGUMENTS; i++) {
    uint64_t pointer = 0;
    if (read_memory(tid, address + i * word, &pointer, word) < word || pointer == 0) break;
    if (!is_wanted(start, read_memory(tid, pointer, start, sizeof start))) continue;
    ssize_t got = read_text(tid, pointer, bytes + length, sizeof bytes - length);
    if (got > 0) length += (size_t)got + 1;
  }
  if (length > 0) frame_bytes(frame, FIELD_ENV, bytes, length);
}

void put_own_git_env(struct frame *frame, pid_t pid) {
  static char bytes[ENV_BYTES];
  char file[64], *entry = NULL;
  size_t room = 0, length = 0;
  snprintf(file, sizeof file, "/proc/%d/environ", pid);
  FILE *environment = fopen(file, "re");
  if (environment == NULL) return;
  for (ssize_t got; (got = getdelim(&entry, &room, 0, environment)) > 0;) {
    if (!is_wanted(entry, (size_t)got) || entry[got - 1] != 0 || length + (size_t)got > sizeof bytes) continue;
    memcpy(bytes + length, entry, (size_t)got);
    length += (size_t)got;
  }
  free(entry);
  fclose(environment);
  if (length > 0) frame_bytes(frame, FIELD_ENV, bytes, length);
}
