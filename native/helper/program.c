/* Reads the beginning of a program as the system does. See program.h. */
#define _GNU_SOURCE
#include "program.h"

#include <elf.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "binfmt.h"
#include "plain.h"

enum { MAX_INTERPRETERS = 5, KNOWN = 64, TEXT_ROOM = 256 };

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

/* An open descriptor is its own name for us. */
static const char *name_of(int fd, char *out, size_t room) {
  snprintf(out, room, "/proc/self/fd/%d", fd);
  return out;
}

static bool is_executable(const char *path, const struct stat *wanted) {
  struct stat found;
  if (faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) != 0 || stat(path, &found) != 0) return false;
  return found.st_dev == wanted->st_dev && found.st_ino == wanted->st_ino;
}

/* For what has no path: as it was called, or is called in memory; of one that is too long, the last part. */
static void name_without_path(const char *own, const struct named *named, struct place *place) {
  if (name_as_shown(own, place)) return;
  int length = *named->path == 0 ? snprintf(place->path, PATH_ROOM, "/dev/fd/%d", named->dir)
                                 : snprintf(place->path, PATH_ROOM, "%s", basename(named->path));
  place->length = (size_t)length;
}

/*
 * By which path we can have it: its own, or, of a process that sees other mounts, through its root. What has no path (in memory only,
 * deleted) or too long a one, by a descriptor, into `fd`. NULL: it cannot be executed.
 */
static const char *reach(pid_t tid, const struct named *named, struct place *place, int *fd, char *joined, size_t room) {
  if (!place->exists || !S_ISREG(place->stat.st_mode)) return NULL;
  if (place->known) {
    if (is_executable(place->path, &place->stat)) return place->path;
    int length = snprintf(joined, room, "/proc/%d/root%s", tid, place->path);
    if (length > 0 && (size_t)length < room && is_executable(joined, &place->stat)) return joined;
  }
  *fd = open_place(tid, named->dir, named->path);
  if (*fd < 0 || !is_executable(name_of(*fd, joined, room), &place->stat)) return NULL;
  if (!place->known) name_without_path(joined, named, place);
  return joined;
}

/* The interpreter in the first line of a script; NULL when it is none. */
static char *interpreter_in(char *head, ssize_t length) {
  if (length < 3 || head[0] != '#' || head[1] != '!') return NULL;
  head[length] = 0;
  char *start = head + 2 + strspn(head + 2, " \t");
  start[strcspn(start, " \t\r\n")] = 0;
  return *start == 0 ? NULL : start;
}

/* Of this machine. Another one's needs an emulator. */
static bool is_own_binary(const char *head) {
  uint16_t machine;
  memcpy(&machine, head + offsetof(Elf64_Ehdr, e_machine), sizeof machine);
#ifdef __x86_64__
  return machine == EM_X86_64 || machine == EM_386;
#else
  return machine == EM_AARCH64 || machine == EM_ARM;
#endif
}

/* Rules belong to user namespaces. */
static bool has_our_rules(pid_t tid) {
  char theirs[64];
  struct stat own, other;
  snprintf(theirs, sizeof theirs, "/proc/%d/ns/user", tid);
  return stat("/proc/self/ns/user", &own) == 0 && stat(theirs, &other) == 0 && own.st_ino == other.st_ino;
}

/* Looks at how one file begins. True: it is started by what `next` says, and that is to be looked at; else `result` says whether it loads. */
static bool look_into(pid_t tid, const char *path, const char *called, struct handler *next, enum loading *result) {
  static char head[HEAD_BYTES + 1], interpreter[HEAD_BYTES + 1];
  int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  *result = LOADS; /* also what is executable but not readable: there is nothing to look at */
  if (fd < 0) return false;
  memset(head, 0, sizeof head);
  ssize_t length = pread(fd, head, HEAD_BYTES, 0);
  close(fd);
  bool is_own = length >= 4 && memcmp(head, "\177ELF", 4) == 0 && is_own_binary(head);
  bool is_script = length >= 2 && memcmp(head, "#!", 2) == 0;
  bool is_handled = binfmt_find((const uint8_t *)head, called, !is_own && !is_script, next);
  if (!is_handled && is_own) return false;
  const char *found = is_handled ? next->interpreter : interpreter_in(head, length);
  /* Text that says nothing is taken by shells alone, which read it themselves. Other things may have a rule that we do not see. */
  bool is_text = length <= 0 || memchr(head, 0, (size_t)length) == NULL;
  *result = is_text || (binfmt_seen() && has_our_rules(tid)) ? LOADS_NOT : LOADS_UNSURE;
  if (found == NULL) return false;
  snprintf(interpreter, sizeof interpreter, "%s", found);
  *next = (struct handler){interpreter, is_handled && next->is_open};
  return true;
}

enum loading program_loads(pid_t tid, const struct named *named, struct place *place, struct stat *loaded) {
  static struct place interpreter;
  char joined[PATH_ROOM + 64];
  struct place *current = place;
  struct named called = *named;
  struct handler next = {0};
  enum loading result = LOADS_NOT;
  for (int i = 0; i < MAX_INTERPRETERS; i++) {
    int fd = -1;
    const char *path = reach(tid, &called, current, &fd, joined, sizeof joined);
    *loaded = current->stat;
    bool goes_on = path != NULL && look_into(tid, path, called.path, &next, &result);
    if (fd >= 0) close(fd);
    /* What was opened for its rule is there, whether we see it or not. */
    if (path == NULL) return next.is_open ? LOADS_UNSURE : LOADS_NOT;
    if (!goes_on) return result;
    if (next.is_open) tid = getpid();
    called = (struct named){AT_FDCWD, next.interpreter};
    current = &interpreter;
    find_place(tid, AT_FDCWD, called.path, true, current);
  }
  return LOADS_NOT;
}
