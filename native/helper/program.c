/* Reads the beginning of a program as the system does. See program.h. */
#define _GNU_SOURCE
#include "program.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plain.h"

enum { HEAD_BYTES = 256, MAX_INTERPRETERS = 5, KNOWN = 64, TEXT_ROOM = 256 };

/* Programs that were found to load, under the absolute paths that they were called by. */
static struct known {
  struct stat stat;
  char text[TEXT_ROOM], path[TEXT_ROOM];
} known[KNOWN];

static struct known *known_at(const char *text) {
  uint32_t hash = 2166136261u;
  for (const char *at = text; *at != 0; at++) hash = (hash ^ (uint8_t)*at) * 16777619u;
  return &known[hash % KNOWN];
}

/* What changes the file or its rights changes one of these. */
static bool is_same(const struct stat *a, const struct stat *b) {
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
         a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Not what means another file for each process. */
static bool is_lasting(const char *text) {
  return text[0] == '/' && strncmp(text, "/proc/", 6) != 0 && strncmp(text, "/dev/", 5) != 0;
}

bool program_recall(pid_t tid, const char *text, struct place *place) {
  char joined[TEXT_ROOM + 64];
  /* From another root, a link that begins at the root would lead us to ours. */
  if (!plain_holds() || !is_lasting(text) || strlen(text) >= TEXT_ROOM) return false;
  const struct known *found = known_at(text);
  if (strcmp(found->text, text) != 0) return false;
  snprintf(joined, sizeof joined, "/proc/%d/root%s", tid, text);
  if (stat(joined, &place->stat) != 0 || !is_same(&place->stat, &found->stat)) return false;
  place->known = place->exists = true;
  place->moot = false;
  place->length = strlen(found->path);
  memcpy(place->path, found->path, place->length + 1);
  return true;
}

void program_remember(const char *text, const struct place *place) {
  if (!is_lasting(text) || strlen(text) >= TEXT_ROOM || place->length >= TEXT_ROOM) return;
  struct known *entry = known_at(text);
  strcpy(entry->text, text);
  memcpy(entry->path, place->path, place->length + 1);
  entry->stat = place->stat;
}

static bool is_executable(const char *path, const struct stat *wanted) {
  struct stat found;
  if (faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) != 0 || stat(path, &found) != 0) return false;
  return found.st_dev == wanted->st_dev && found.st_ino == wanted->st_ino;
}

/* By which path we can have it: its own, or, of a process that sees other mounts, through its root. NULL: it cannot be executed. */
static const char *reach(pid_t tid, const struct place *place, char *joined, size_t room) {
  if (!place->known || !place->exists || !S_ISREG(place->stat.st_mode)) return NULL;
  if (is_executable(place->path, &place->stat)) return place->path;
  int length = snprintf(joined, room, "/proc/%d/root%s", tid, place->path);
  return length > 0 && (size_t)length < room && is_executable(joined, &place->stat) ? joined : NULL;
}

/* The interpreter in the first line of a script; NULL when it is none. */
static char *interpreter_in(char *head, ssize_t length) {
  if (length < 3 || head[0] != '#' || head[1] != '!') return NULL;
  head[length] = 0;
  char *start = head + 2 + strspn(head + 2, " \t");
  start[strcspn(start, " \t\r\n")] = 0;
  return *start == 0 ? NULL : start;
}

bool program_loads(pid_t tid, const struct place *place, struct stat *loaded) {
  struct place current = *place;
  char joined[PATH_ROOM + 64];
  for (int i = 0; i < MAX_INTERPRETERS; i++) {
    const char *path = reach(tid, &current, joined, sizeof joined);
    if (path == NULL) return false;
    *loaded = current.stat;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return true; /* executable but not readable: there is nothing to look at */
    char head[HEAD_BYTES + 1];
    ssize_t length = pread(fd, head, HEAD_BYTES, 0);
    close(fd);
    if (length >= 4 && memcmp(head, "\177ELF", 4) == 0) return true;
    char *interpreter = length < 0 ? NULL : interpreter_in(head, length);
    if (interpreter == NULL) return false;
    find_place(tid, AT_FDCWD, interpreter, true, &current);
  }
  return false;
}
