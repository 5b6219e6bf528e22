/* Lists of paths, and a look at who owns a file. See record-note.h. */
#define _GNU_SOURCE
#include "record-note.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record-known.h"

#define NOBODY ((uid_t)-1)

static const char **ignored;
static size_t ignored_count;
static uint32_t ignored_paths, foreign_paths;

void note_ignore(const char *path) {
  const char **grown = realloc(ignored, (ignored_count + 1) * sizeof *ignored);
  if (grown == NULL) abort(); /* nothing has begun yet */
  ignored = grown;
  ignored[ignored_count++] = path;
}

void note_finish(void) { seen_finish(ignored_paths, foreign_paths); }

/* A repository's own directory is not recorded: git keeps its history itself, and all of it would be in every recording. */
static bool is_gits(const struct place *place) {
  for (const char *at = place->path; (at = strstr(at, "/.git")) != NULL; at += 5) {
    if (at[5] == '/' || at[5] == 0) return true;
  }
  return false;
}

bool note_is_ignored(const struct place *place) {
  for (size_t i = 0; i < ignored_count; i++) {
    size_t length = strlen(ignored[i]);
    if (place->length < length || memcmp(place->path, ignored[i], length) != 0) continue;
    if (place->path[length] == 0 || place->path[length] == '/' || length == 1) return true;
  }
  return is_gits(place);
}

/* Of somebody else, and this user cannot write it: what it holds is the machine's, not the command's. */
static bool is_foreign(const struct place *place) {
  static uid_t user = NOBODY; /* as long as nobody has asked */
  if (user == NOBODY) user = geteuid();
  if (user == 0 || !place->exists || place->stat.st_uid == user) return false;
  return S_ISLNK(place->stat.st_mode) || faccessat(AT_FDCWD, place->path, W_OK, AT_EACCESS) != 0;
}

struct seen *note(const struct place *place, uint16_t as) {
  struct seen *seen = seen_find(place->path, place->length);
  if (seen != NULL) {
    seen_as(seen, as);
    if ((as & (SEEN_WRITTEN | SEEN_DELETED)) != 0) seen->version++;
    return seen;
  }
  if (note_is_ignored(place)) ignored_paths++;
  else if (is_foreign(place)) foreign_paths++;
  else return seen_add(place, place->exists && !seen_is_below_new(place->path, place->length, known_generation()), as);
  return NULL;
}

/* Whether the thread has no rights but those that we have, too: what we may not enter it may not either. */
static bool has_our_rights(pid_t tid) {
  char ours[64], theirs[64];
  size_t length = read_link(getpid(), "ns/user", ours, sizeof ours);
  return length > 0 && read_link(tid, "ns/user", theirs, sizeof theirs) == length && memcmp(ours, theirs, length) == 0;
}

void note_lost(const struct call *call, int dir, int path) {
  char text[MAX_TEXT], joined[MAX_TEXT + 64];
  pid_t tid = tid_of(call);
  /* Who was killed meanwhile has nothing that could be read, and changes nothing. */
  if (!still_waits(call)) return;
  if (path != NONE && read_text(tid, argument(call, path), text, sizeof text) > 0) {
    int directory = dir == CWD ? AT_FDCWD : (int)argument(call, dir);
    if (text[0] == '/') snprintf(joined, sizeof joined, "/proc/%d/root%s", tid, text);
    else if (directory == AT_FDCWD) snprintf(joined, sizeof joined, "/proc/%d/cwd/%s", tid, text);
    else snprintf(joined, sizeof joined, "/proc/%d/fd/%d/%s", tid, directory, text);
    int fd = open(joined, O_PATH | O_CLOEXEC);
    if (fd >= 0) close(fd);
    else if (errno == ENOTDIR || errno == ELOOP || errno == ENAMETOOLONG || (errno == EACCES && has_our_rights(tid))) return;
  }
  seen_lost(1);
}
