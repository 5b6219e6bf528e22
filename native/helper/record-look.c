/* The place that a call looks at, as cheaply as that can be had. See record-look.h. */
#define _GNU_SOURCE
#include "record-look.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mounts.h"
#include "plain.h"
#include "record-known.h"
#include "record-note.h"

/* The links on the way to a path, which is another one without them. Only in our own view. */
static void note_links(const char *path) {
  static char left[PATH_ROOM], target[PATH_ROOM];
  static struct place link;
  size_t length = 0;
  /* Without what changes nothing; what goes up is left to be found by what was resolved. */
  for (const char *at = path; *at != 0; at++) {
    if (length + 1 >= PATH_ROOM || strncmp(at, "/../", 4) == 0 || strcmp(at, "/..") == 0) return;
    if (at[0] == '/' && (at[1] == '/' || at[1] == 0 || strncmp(at, "/./", 3) == 0)) {
      if (at[1] == '.') at++;
      continue;
    }
    left[length++] = *at;
  }
  left[length] = 0;
  for (int links = 0; links < 16; links++) {
    bool is_plain = true;
    for (char *end = left; is_plain && *end != 0;) {
      end = strchrnul(end + 1, '/');
      char saved = *end;
      *end = 0;
      link.known = link.exists = lstat(left, &link.stat) == 0;
      link.length = (size_t)(end - left);
      memcpy(link.path, left, link.length + 1);
      *end = saved;
      if (!link.exists) return;
      if (!S_ISLNK(link.stat.st_mode)) continue;
      ssize_t got = readlink(link.path, target, sizeof target - 1);
      if (got <= 0 || (size_t)got + strlen(end) + link.length >= PATH_ROOM) return;
      note(&link, SEEN_READ);
      target[got] = 0;
      if (strstr(target, "..") != NULL || strstr(target, "./") != NULL || strstr(target, "//") != NULL) return;
      memmove(target + got, end, strlen(end) + 1);
      size_t before = target[0] == '/' ? 0 : (size_t)(strrchr(link.path, '/') - link.path) + 1;
      memmove(left + before, target, strlen(target) + 1);
      is_plain = false;
    }
    if (is_plain) return;
  }
}

static uint16_t look_of(const struct rule *rule, const struct place *place) {
  if (!place->exists) return SEEN_LOOKED_AT;
  switch (rule->op) {
    case OP_EXEC: return SEEN_EXECUTED;
    case OP_READLINK: return S_ISLNK(place->stat.st_mode) ? SEEN_READ : SEEN_LOOKED_AT;
    case OP_CHDIR: return SEEN_LISTED;
    case OP_WRITE: return S_ISDIR(place->stat.st_mode) ? SEEN_LISTED : SEEN_READ;
    default: return SEEN_LOOKED_AT;
  }
}

/* A path that goes up again from where nothing is (`missing/../x`) means nothing; what was looked for is the first that is missing. */
static void find_missing(const struct call *call, struct known *known, struct place *place) {
  struct stat stat;
  for (char *end = known->path; *end != 0;) {
    end = strchrnul(end + 1, '/');
    char saved = *end;
    *end = 0;
    bool is_there = lstat(known->path, &stat) == 0;
    if (!is_there) find_place(tid_of(call), AT_FDCWD, known->path, false, place);
    *end = saved;
    if (!is_there) return;
  }
}

/*
 * The place of a path that needs no resolving: it begins at a directory that the system named, and nothing on the way is a link. What
 * find_place does for all paths takes three times as many calls. False: it has to be found out.
 */
static bool find_plain(const struct known *known, bool follows, struct place *place) {
  if (!known->is_plain) return false;
  place->known = place->exists = place->moot = false;
  if (known->is_name) {
    if (lstat(known->path, &place->stat) == 0) place->exists = true;
    else if (errno != ENOENT) return false;
  } else if (!plain_look(known->path, follows, place)) return false;
  if (follows && place->exists && S_ISLNK(place->stat.st_mode)) return false;
  memcpy(place->path, known->path, known->length + 1);
  place->length = known->length;
  place->known = true;
  return true;
}

void record_look(struct call *call, const struct rule *rule, bool follows, int flags) {
  static struct place place;
  struct known known;
  bool is_known = rule->path != NONE && known_look_up(call, rule, follows, &known);
  if (is_known && (flags & O_PATH) != 0) known.asks = KNOWN_STAT;
  if (is_known && known_is_told(&known)) return;
  bool is_found = is_known && find_plain(&known, follows, &place);
  place.shut = false;
  if (!is_found) {
    place_at(call, rule->dir, rule->path, follows, rule->flags != NONE || rule->path == NONE, &place);
    if (sees_otherwise(call)) mounts_translate(tid_of(call), &place);
  }
  if (!place.known && !place.moot && is_known) find_missing(call, &known, &place);
  /* It was refused a look, as we were: whether anything is there may come to light later. */
  if (!place.known || place.shut) {
    if (!place.moot) note_lost(call, rule->dir, rule->path);
    return;
  }
  uint16_t as = (flags & O_PATH) != 0 ? SEEN_LOOKED_AT : look_of(rule, &place);
  struct seen *seen = note(&place, as);
  if (!is_known) return;
  if (known.length != place.length || memcmp(known.path, place.path, place.length) != 0) note_links(known.path);
  known_remember(&known, seen);
}
