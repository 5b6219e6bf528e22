/*
 * What a path means there is opened through /proc/TID/root; which mount that is on says where in its filesystem it lies; a
 * mount of the same filesystem in our view says what we call it. See mounts.h.
 */
#define _GNU_SOURCE
#include "mounts.h"

#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mount-spot.h"
#include "mount-table.h"
#include "protect.h"
#include "spool.h"

enum { KNOWN_MOUNTS = 64, MAX_TRIES = 3 };

/* Ours, and a stream of it that says when it changes. */
static struct mount_table ours;
static FILE *own_info;
static _Atomic bool is_expecting;
static bool has_changed;

bool mounts_differ(pid_t pid) {
  static ino_t own;
  struct stat now;
  char file[64];
  if (own == 0 && stat("/proc/self/ns/mnt", &now) == 0) own = now.st_ino;
  snprintf(file, sizeof file, "/proc/%d/ns/mnt", pid);
  return stat(file, &now) == 0 && now.st_ino != own;
}

/* Whether our table is up to date now, having been read again if need be. */
static bool is_own_current(bool *was_read) {
  *was_read = false;
  if (own_info == NULL) {
    own_info = fopen("/proc/self/mountinfo", "re");
    if (own_info == NULL) return false;
  } else {
    struct pollfd change = {.fd = fileno(own_info), .events = POLLPRI};
    if (ours.count > 0 && (poll(&change, 1, 0) <= 0 || (change.revents & (POLLPRI | POLLERR)) == 0)) return true;
    rewind(own_info);
  }
  *was_read = true;
  return mount_table_read(&ours, own_info) && ours.count > 0;
}

void mounts_expect(void) {
  bool was_read;
  if (!is_expecting) is_own_current(&was_read);
  is_expecting = true;
}

bool mounts_are_expected(void) { return is_expecting; }

bool mounts_have_changed(void) {
  bool was_read;
  if (!is_expecting || has_changed) return has_changed;
  if (is_own_current(&was_read) && was_read) has_changed = true;
  return has_changed;
}

/* What of which filesystem a mount shows, which never changes: of the last ones it is remembered. */
static const struct mount *mount_of(pid_t tid, const struct found *found) {
  static struct mount_table theirs;
  static struct {
    uint64_t unique;
    struct mount mount;
  } known[KNOWN_MOUNTS];
  size_t slot = found->unique % KNOWN_MOUNTS;
  if (found->unique != 0 && known[slot].unique == found->unique) return &known[slot].mount;
  char file[64];
  snprintf(file, sizeof file, "/proc/%d/mountinfo", tid);
  FILE *info = fopen(file, "re");
  bool is_read = info != NULL && mount_table_read(&theirs, info);
  if (info != NULL) fclose(info);
  const struct mount *mount = is_read ? mount_find(&theirs, (unsigned long)found->spot.mount) : NULL;
  char *root = mount == NULL || found->unique == 0 ? NULL : strdup(mount->root);
  if (root == NULL) return mount;
  free(known[slot].mount.root);
  known[slot].unique = found->unique;
  known[slot].mount = *mount;
  known[slot].mount.root = root;
  known[slot].mount.point = NULL;
  return &known[slot].mount;
}

/* `path` below `root`, both within a filesystem; NULL when it is not. */
static const char *below(const char *path, const char *root) {
  size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);
  return strncmp(path, root, length) == 0 && (path[length] == '/' || path[length] == 0) ? path + length : NULL;
}

static bool spell(struct place *place, const char *point, const char *rest) {
  size_t before = strcmp(point, "/") == 0 ? 0 : strlen(point), after = strlen(rest);
  if (before + after + 1 >= sizeof place->path) return false;
  memcpy(place->path, point, before);
  memcpy(place->path + before, rest, after + 1);
  place->length = before + after;
  if (place->length == 0) place->length = (size_t)snprintf(place->path, sizeof place->path, "/");
  return true;
}

/* Filesystems that lie on no file of ours; a process that writes to an overlay or a loop device may change one. */
static bool is_apart(const char *type) {
  static const char *const types[] = {"tmpfs", "ramfs", "devtmpfs", "devpts", "sysfs", "mqueue", "cgroup2", "cgroup"};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    if (strcmp(type, types[i]) == 0) return true;
  }
  return false;
}

/* Of several paths of one thing: what may not be changed is known by that in our home, what was changed by that in the target. */
enum rank { ANYWHERE, IN_TARGET, IN_HOME };
static enum rank rank_of(const struct place *candidate) {
  return protect_concerns(candidate) ? IN_HOME : spool_concerns(candidate) ? IN_TARGET : ANYWHERE;
}

/* Names `inside`, a path in the filesystem of `mount`, as we see it. */
static void name_ours(struct place *place, const struct mount *mount, const char *inside, const struct found *found,
                      size_t missing) {
  static struct place candidate;
  bool is_visible = false;
  place->known = false;
  for (int wanted = IN_HOME; wanted >= ANYWHERE && !place->known; wanted--) {
    for (size_t i = 0; i < ours.count && !place->known; i++) {
      const struct mount *own = &ours.mounts[i];
      if (own->major != mount->major || own->minor != mount->minor) continue;
      const char *rest = below(inside, own->root);
      if (rest == NULL || !spell(&candidate, own->point, rest)) continue;
      is_visible = true;
      if ((int)rank_of(&candidate) < wanted) continue;
      if (!mount_spot_is_ours(&candidate, missing, &found->spot)) continue;
      memcpy(place->path, candidate.path, candidate.length + 1);
      place->length = candidate.length;
      place->known = true;
    }
  }
  place->moot = !place->known && !is_visible && is_apart(mount->type);
}

/* The path within the filesystem of `mount` of what was found; false when it is too long. */
static bool spell_inside(const struct place *place, const struct mount *mount, const struct found *found, char *inside) {
  const char *before = strcmp(mount->root, "/") == 0 ? "" : mount->root;
  const char *after = place->length == 1 ? "" : place->path + found->start;
  int length = snprintf(inside, PATH_ROOM, "%s%s", before, after);
  return length >= 0 && length < PATH_ROOM;
}

void mounts_init(void) {
  static struct place target;
  char inside[PATH_ROOM];
  struct found found;
  bool was_read;
  if (spool_target() == NULL || !spell(&target, "/", spool_target())) return;
  if (!mount_spot_find(getpid(), &target, &found) || !is_own_current(&was_read)) return;
  const struct mount *mount = mount_of(getpid(), &found);
  if (mount == NULL || !spell_inside(&target, mount, &found, inside)) return;
  for (size_t i = 0; i < ours.count; i++) {
    const struct mount *own = &ours.mounts[i];
    if (own->id == mount->id || own->major != mount->major || own->minor != mount->minor) continue;
    if (below(inside, own->root) != NULL || below(own->root, inside) != NULL) is_expecting = has_changed = true;
  }
}

static void translate_once(pid_t tid, struct place *place) {
  char inside[PATH_ROOM];
  struct found found;
  bool was_read;
  place->known = false;
  if (!mount_spot_find(tid, place, &found) || !is_own_current(&was_read)) return;
  if (was_read && is_expecting) has_changed = true;
  const struct mount *mount = mount_of(tid, &found);
  if (mount == NULL) return;
  /* As it is: nothing on it is anybody's file, and the path may be a word to us (protect.h). */
  place->known = strcmp(mount->type, "proc") == 0;
  if (place->known || !spell_inside(place, mount, &found, inside)) return;
  size_t whole = place->length == 1 ? 0 : place->length;
  name_ours(place, mount, inside, &found, whole - found.length);
}

void mounts_translate(pid_t tid, struct place *place) {
  char root[PATH_ROOM];
  if (!place->known) return;
  place->known = false;
  /* From a root of its own below that of its mounts, paths are not what we have found. */
  if (read_link(tid, "root", root, sizeof root) != 1) return;
  /* Others may be removing what lies there, and what is around it. */
  for (int i = 0; i < MAX_TRIES && !place->known && !place->moot; i++) translate_once(tid, place);
}
