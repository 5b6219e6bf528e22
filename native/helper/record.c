/* Decides what each call means for the recording. See record.h. */
#define _GNU_SOURCE
#include "record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "foreign.h"
#include "protect.h"
#include "record-known.h"
#include "seen.h"
#include "under-way.h"

#ifndef __NR_openat2
#define __NR_openat2 437
#endif
#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

static bool is_on, is_looking;
static const char **ignored;
static size_t ignored_count;
static uint32_t ignored_paths, foreign_paths;
static uid_t user;

void record_start(bool looks) {
  is_on = true;
  is_looking = looks;
  user = geteuid();
}
bool record_is_on(void) { return is_on; }
bool record_is_looking(void) { return is_looking; }
void record_ignore(const char *path) {
  const char **grown = realloc(ignored, (ignored_count + 1) * sizeof *ignored);
  if (grown == NULL) abort(); /* nothing has begun yet */
  ignored = grown;
  ignored[ignored_count++] = path;
}

void record_finish(void) {
  if (is_on) seen_finish(ignored_paths, foreign_paths);
}

/* A repository's own directory is not recorded: git keeps its history itself, and all of it would be in every recording. */
static bool is_gits(const struct place *place) {
  for (const char *at = place->path; (at = strstr(at, "/.git")) != NULL; at += 5) {
    if (at[5] == '/' || at[5] == 0) return true;
  }
  return false;
}

static bool is_ignored(const struct place *place) {
  for (size_t i = 0; i < ignored_count; i++) {
    size_t length = strlen(ignored[i]);
    if (place->length < length || memcmp(place->path, ignored[i], length) != 0) continue;
    if (place->path[length] == 0 || place->path[length] == '/' || length == 1) return true;
  }
  return is_gits(place);
}

/* Of somebody else, and this user cannot write it: what it holds is the machine's, not the command's. */
static bool is_foreign(const struct place *place) {
  if (user == 0 || !place->exists || place->stat.st_uid == user) return false;
  return S_ISLNK(place->stat.st_mode) || faccessat(AT_FDCWD, place->path, W_OK, AT_EACCESS) != 0;
}

/* Notes that a path is seen `as`. NULL when it is not recorded. */
static struct seen *note(const struct place *place, uint8_t as) {
  struct seen *seen = seen_find(place->path, place->length);
  if (seen != NULL) {
    seen_as(seen, as);
    if ((as & (SEEN_WRITTEN | SEEN_DELETED)) != 0) seen->version++;
    return seen;
  }
  if (is_ignored(place)) ignored_paths++;
  else if (is_foreign(place)) foreign_paths++;
  else return seen_add(place, place->exists && !seen_is_below_new(place->path, place->length, known_generation()), as);
  return NULL;
}

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

/* Everything below a directory that is about to be moved away; `saves`: to where nothing is recorded. */
static void note_below(const struct place *directory, bool saves) {
  DIR *list = opendir(directory->path);
  if (list == NULL) {
    seen_lost(1);
    return;
  }
  struct place *below = malloc(sizeof *below);
  for (struct dirent *entry; below != NULL && (entry = readdir(list)) != NULL;) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    int length = snprintf(below->path, sizeof below->path, "%s/%s", directory->path, entry->d_name);
    if (length < 0 || (size_t)length >= sizeof below->path || lstat(below->path, &below->stat) != 0) continue;
    below->length = (size_t)length;
    below->known = below->exists = true;
    struct seen *seen = note(below, SEEN_DELETED);
    if (saves) seen_save(below, false);
    if (seen == NULL || !S_ISDIR(below->stat.st_mode)) continue;
    note_below(below, saves);
    seen->is_new = true;
  }
  free(below);
  closedir(list);
}

static bool is_directory(const struct place *place) { return place->exists && S_ISDIR(place->stat.st_mode); }
/* A change of these changes what other paths mean. */
static bool is_way(const struct place *place) { return place->exists && (S_ISDIR(place->stat.st_mode) || S_ISLNK(place->stat.st_mode)); }

/* One of the two sides of a rename: what is at `from` goes away from there. */
static void move_away(const struct place *from, uint8_t as, bool saves) {
  struct seen *seen = note(from, as);
  if (saves) seen_save(from, false);
  if (seen == NULL || !is_directory(from)) return;
  /* What was made since the beginning has nothing in it that was there before. */
  if (seen->was_there) note_below(from, saves);
  /* All that was in it has been noted: what comes to be there later was not. */
  seen->is_new = true;
}

static void move_here(const struct place *to, const struct place *what, uint8_t as) {
  struct seen *seen = note(to, is_directory(what) ? as | SEEN_MOVED : as);
  if (seen != NULL && is_directory(what)) seen->is_new = true;
}

static bool is_empty(const struct place *directory) {
  DIR *list = opendir(directory->path);
  if (list == NULL) return false;
  bool is_empty = true;
  for (struct dirent *entry; is_empty && (entry = readdir(list)) != NULL;)
    is_empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
  closedir(list);
  return is_empty;
}

static bool is_below(const struct place *place, const struct place *directory) {
  return place->length > directory->length && memcmp(place->path, directory->path, directory->length) == 0 && place->path[directory->length] == '/';
}

/* What the system will refuse must not be taken for done: a directory that stays would count as replaced, with all in it. */
static bool will_fail(const struct place *from, const struct place *to, unsigned flags) {
  if (!from->exists || is_below(to, from)) return true;
  if ((flags & RENAME_EXCHANGE) != 0) return !to->exists || is_below(from, to);
  if (!to->exists) return false;
  if ((flags & RENAME_NOREPLACE) != 0 || is_directory(from) != is_directory(to)) return true;
  return is_directory(to) && !is_empty(to);
}

static void record_rename(const struct call *call, const struct place *from, const struct place *to) {
  unsigned flags = call->notification->data.nr == __NR_renameat2 ? (unsigned)argument(call, 4) : 0;
  if (will_fail(from, to, flags)) {
    note(from, SEEN_LOOKED_AT);
    note(to, SEEN_LOOKED_AT);
    return;
  }
  if (is_way(from) || is_way(to)) known_forget();
  bool to_nowhere = is_ignored(to);
  if ((flags & RENAME_EXCHANGE) != 0) {
    move_away(from, SEEN_WRITTEN, to_nowhere);
    move_away(to, SEEN_WRITTEN, is_ignored(from));
    move_here(from, to, SEEN_WRITTEN);
    move_here(to, from, SEEN_WRITTEN);
    return;
  }
  move_away(from, SEEN_DELETED, to_nowhere);
  if (to->exists) note(to, SEEN_WRITTEN);
  /* What is there loses its place to it. */
  bool is_same = to->exists && to->stat.st_ino == from->stat.st_ino && to->stat.st_dev == from->stat.st_dev;
  if (!is_same) seen_save(to, true);
  move_here(to, from, SEEN_WRITTEN);
}

static void record_open_call(const struct call *call, int flags, const struct place *place) {
  bool writes = (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) != 0 && (flags & O_PATH) == 0;
  (void)call;
  if (!place->exists) note(place, (flags & O_CREAT) != 0 ? SEEN_WRITTEN : SEEN_LOOKED_AT);
  else if (is_directory(place)) note(place, writes || (flags & O_PATH) != 0 ? SEEN_LOOKED_AT : SEEN_LISTED);
  else if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL) || (flags & O_PATH) != 0) note(place, SEEN_LOOKED_AT);
  else if ((flags & (O_WRONLY | O_RDWR | O_TRUNC)) == 0) note(place, SEEN_READ);
  else {
    note(place, (flags & O_ACCMODE) == O_RDWR ? SEEN_WRITTEN | SEEN_READ : SEEN_WRITTEN);
    seen_save(place, false);
  }
}

/* What is made exclusively fails where something is. */
static void record_create(const struct place *place) {
  note(place, place->exists ? SEEN_LOOKED_AT : SEEN_WRITTEN);
}

static void record_delete(const struct place *place) {
  note(place, place->exists ? SEEN_DELETED : SEEN_LOOKED_AT);
  if (is_way(place)) known_forget();
  seen_save(place, true);
}

static void record_change(struct call *call, const struct rule *rule, int flags, const struct place *place, const struct place *to) {
  switch (rule->op) {
    case OP_WRITE: record_open_call(call, flags, place); break;
    case OP_RENAME: record_rename(call, place, to); break;
    case OP_DELETE: record_delete(place); break;
    case OP_LINK:
      note(place, SEEN_LOOKED_AT);
      record_create(to);
      break;
    case OP_CREATE:
      record_create(place);
      if (is_link_call(rule->number)) known_forget();
      break;
    case OP_TRUNCATE:
      note(place, place->exists ? SEEN_WRITTEN : SEEN_LOOKED_AT);
      seen_save(place, false);
      break;
    case OP_ATTRIBUTES:
      note(place, place->exists ? SEEN_WRITTEN | SEEN_STAMPED : SEEN_LOOKED_AT);
      if (place->exists) seen_stamp(&place->stat);
      break;
    default: break;
  }
}

static uint8_t look_of(const struct call *call, const struct rule *rule, const struct place *place) {
  (void)call;
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
  } else {
    struct open_how how = {.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
    int fd = (int)syscall(__NR_openat2, AT_FDCWD, known->path, &how, sizeof how);
    if (fd < 0 && errno != ENOENT) return false;
    if (fd >= 0) {
      place->exists = fstat(fd, &place->stat) == 0;
      close(fd);
      if (!place->exists) return false;
    }
  }
  if (follows && place->exists && S_ISLNK(place->stat.st_mode)) return false;
  memcpy(place->path, known->path, known->length + 1);
  place->length = known->length;
  place->known = true;
  return true;
}

/* A call that changes nothing. */
static void record_look(struct call *call, const struct rule *rule, bool follows, int flags) {
  static struct place place;
  struct known known;
  bool is_known = rule->path != NONE && known_look_up(call, rule, follows, &known);
  if (is_known && (flags & O_PATH) != 0) known.asks = KNOWN_STAT;
  if (is_known && known_is_told(&known)) return;
  bool is_found = is_known && find_plain(&known, follows, &place);
  if (!is_found) {
    place_at(call, rule->dir, rule->path, follows, rule->flags != NONE || rule->path == NONE, &place);
    if (sees_otherwise(call)) mounts_translate(tid_of(call), &place);
  }
  if (!place.known && !place.moot && is_known) find_missing(call, &known, &place);
  if (!place.known) {
    if (!place.moot) seen_lost(1);
    return;
  }
  uint8_t as = (flags & O_PATH) != 0 ? SEEN_LOOKED_AT : look_of(call, rule, &place);
  struct seen *seen = note(&place, as);
  if (!is_known) return;
  if (known.length != place.length || memcmp(known.path, place.path, place.length) != 0) note_links(known.path);
  known_remember(&known, seen);
}

static bool only_looks(const struct rule *rule, int flags) {
  if (rule->op == OP_WRITE) return (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) == 0 || (flags & O_PATH) != 0;
  return rule->op == OP_EXEC || rule->op >= OP_STAT;
}

/* A call that changes something at `place`, and at `to` if it has two. */
static void record_changes(struct call *call, const struct rule *rule, int flags, bool follows, struct place *place, struct place *to) {
  place->known = place->exists = to->known = to->exists = false;
  if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL)) follows = false;
  if (rule->number == __NR_bind) {
    if (!socket_place(call, place)) return;
  } else place_at(call, rule->dir, rule->path, follows, rule->flags != NONE || rule->path == NONE, place);
  bool is_translated = sees_otherwise(call);
  if (is_translated) mounts_translate(tid_of(call), place);
  if (rule->to_path != NONE) {
    place_at(call, rule->to_dir, rule->to_path, false, false, to);
    if (is_translated) mounts_translate(tid_of(call), to);
  }
  bool has_to = rule->to_path != NONE;
  if (!place->known || (has_to && !to->known)) {
    if (!place->moot && !(has_to && to->moot)) seen_lost(1);
    return;
  }
  call->refused = protect_refuses(call->process, rule->op, place, has_to ? to : NULL);
  if (call->refused || !still_waits(call)) return;
  record_change(call, rule, flags, place, to);
}

void record_call(struct call *call, bool is_foreign_call) {
  static struct seccomp_notif translated;
  if (is_foreign_call) {
    translated = *call->notification;
    translated.data.nr = foreign_native(&call->notification->data);
    call->notification = &translated;
  }
  const struct rule *rule = rule_for(call->notification->data.nr);
  bool is_clear = call->notification->data.nr >= 0 && (rule == NULL || rule->op != OP_BY_HANDLE);
  if (!is_clear) seen_lost(1);
  /* Of x32 every call comes here. */
  if (!is_clear || rule == NULL) return;
  if (rule->op == OP_MOUNTS || rule->op == OP_CHROOT) known_stop();
  if (rule->op == OP_MOUNTS) {
    note_mounts(call, rule);
    return;
  }
  int flags = rule->op == OP_WRITE ? open_flags(call) : 0;
  bool follows = rule->follows != 0 && (flags & O_NOFOLLOW) == 0;
  if (rule->flags != NONE && ((int)argument(call, rule->flags) & AT_SYMLINK_NOFOLLOW) != 0) follows = false;
  if (rule->op == OP_EXEC) call->process->mounts_known = call->process->other_mounts = false;
  if (only_looks(rule, flags)) {
    if (is_looking) record_look(call, rule, follows, flags);
    /* Not before: its own path begins where it still is. */
    if (rule->op == OP_CHDIR) known_moves(call);
    return;
  }
  static struct place place, to; /* one thread */
  /* Nobody can change what is found here until this call is carried out. */
  under_way_settle(call);
  record_changes(call, rule, flags, follows, &place, &to);
  under_way_add(call, rule->op == OP_LINK ? &to : &place);
}

void record_inherited(const struct place *place) {
  note(place, SEEN_WRITTEN);
  seen_save(place, false);
}
