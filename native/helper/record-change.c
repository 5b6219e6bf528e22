/* What each call will do to the paths that it names. See record-change.h. */
#define _GNU_SOURCE
#include "record-change.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "mounts.h"
#include "protect.h"
#include "record-known.h"
#include "record-note.h"
#include "shut-directory.h"
#include "under-way.h"

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

/* Everything below a directory that is about to be moved away; `saves`: to where nothing is recorded. */
static void note_below(const struct place *directory, bool saves) {
  struct shut_directory shut;
  DIR *list = shut_open(directory, &shut);
  if (list == NULL) {
    seen_lost(1);
    return;
  }
  struct place *below = malloc(sizeof *below);
  for (struct dirent *entry; below != NULL && (entry = readdir(list)) != NULL;) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    int length = snprintf(below->path, sizeof below->path, "%s/%s", directory->path, entry->d_name);
    errno = ENAMETOOLONG;
    if (length < 0 || (size_t)length >= sizeof below->path || lstat(below->path, &below->stat) != 0) {
      if (errno != ENOENT) seen_lost(1);
      continue;
    }
    below->length = (size_t)length;
    below->known = below->exists = true;
    struct seen *seen = note(below, SEEN_DELETED);
    if (saves) seen_save(below, false);
    if (seen == NULL || !S_ISDIR(below->stat.st_mode)) continue;
    note_below(below, saves);
    seen->is_new = true;
  }
  free(below);
  shut_close(list, &shut);
}

static bool is_directory(const struct place *place) { return place->exists && S_ISDIR(place->stat.st_mode); }
/* A change of these changes what other paths mean. */
static bool is_way(const struct place *place) { return place->exists && (S_ISDIR(place->stat.st_mode) || S_ISLNK(place->stat.st_mode)); }

/* One of the two sides of a rename: what is at `from` goes away from there. */
static void move_away(const struct place *from, uint16_t as, bool saves) {
  struct seen *seen = note(from, as);
  if (saves) seen_save(from, false);
  if (seen == NULL || !is_directory(from)) return;
  /* What was made since the beginning has nothing in it that was there before. */
  if (seen->was_there) note_below(from, saves);
  /* All that was in it has been noted: what comes to be there later was not. */
  seen->is_new = true;
}

static void move_here(const struct place *to, const struct place *what, uint16_t as) {
  struct seen *seen = note(to, is_directory(what) ? as | SEEN_MOVED : as);
  if (seen != NULL && is_directory(what)) seen->is_new = true;
}

static bool is_empty(const struct place *directory) {
  struct shut_directory shut;
  DIR *list = shut_open(directory, &shut);
  if (list == NULL) {
    seen_lost(1);
    return false;
  }
  bool is_empty = true;
  for (struct dirent *entry; is_empty && (entry = readdir(list)) != NULL;)
    is_empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
  shut_close(list, &shut);
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
  bool to_nowhere = note_is_ignored(to);
  if ((flags & RENAME_EXCHANGE) != 0) {
    move_away(from, SEEN_WRITTEN, to_nowhere);
    move_away(to, SEEN_WRITTEN, note_is_ignored(from));
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

static void record_open_call(int flags, const struct place *place) {
  bool writes = (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) != 0 && (flags & O_PATH) == 0;
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

static void note_change(const struct call *call, const struct rule *rule, int flags, const struct place *place, const struct place *to) {
  switch (rule->op) {
    case OP_WRITE: record_open_call(flags, place); break;
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
      note(place, place->exists ? SEEN_WRITTEN : SEEN_LOOKED_AT);
      if (place->exists) seen_stamp(&place->stat);
      break;
    default: break;
  }
}

/* A call that changes something at `place`, and at `to` if it has two. */
static void look_and_note(struct call *call, const struct rule *rule, int flags, bool follows, struct place *place, struct place *to) {
  place->known = place->exists = place->shut = to->known = to->exists = to->shut = false;
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
  /* What nobody may look at cannot be changed either; later, when its directory is open again, it must not count as new. */
  if (place->shut) place->known = false;
  if (to->shut) to->known = false;
  if (!place->known || (has_to && !to->known)) {
    if (place->moot || (has_to && to->moot)) return;
    if (place->known) note_lost(call, rule->to_dir, rule->to_path);
    else note_lost(call, rule->dir, rule->number == __NR_bind ? NONE : rule->path);
    return;
  }
  /* Those were looked at before. */
  if (!call->is_of_subvolume) call->refused = protect_refuses(call->process, rule->op, place, has_to ? to : NULL);
  if (call->refused || !still_waits(call)) return;
  note_change(call, rule, flags, place, to);
}

/*
 * Whether names are as they were when this is done, unless somebody makes room for it: something is there already. What finds nothing
 * (a file to be deleted, say) is another matter: whatever comes there next is lost to it. One that we know nothing of may do anything.
 */
static bool alters_no_name(const struct rule *rule, const struct place *place) {
  bool may = rule->op == OP_WRITE || rule->op == OP_CREATE || rule->op == OP_TRUNCATE;
  return may && place->known && place->exists;
}

/* Whether it puts something at the place, or takes away what is there. */
static bool shows(const struct rule *rule, int flags, const struct place *place) {
  if (!place->known) return false;
  if (rule->op == OP_DELETE || rule->op == OP_RENAME) return place->exists;
  return !place->exists && (rule->op == OP_CREATE || rule->op == OP_LINK || (flags & O_CREAT) != 0);
}

void record_change(struct call *call, const struct rule *rule, int flags, bool follows) {
  static struct place place, to;
  /* Nobody can change what is found here until this call is carried out. */
  under_way_settle(call, rule->op == OP_RENAME || rule->op == OP_DELETE);
  look_and_note(call, rule, flags, follows, &place, &to);
  if (call->refused) return;
  const struct place *changed = rule->op == OP_LINK ? &to : &place;
  if (alters_no_name(rule, &place)) under_way_add_other(call);
  else under_way_add(call, changed, shows(rule, flags, changed));
}
