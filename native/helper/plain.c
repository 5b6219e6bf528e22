/* By the system's own check that there is no link on the way. See plain.h. */
#define _GNU_SOURCE
#include "plain.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "newer-calls.h"

/* Our own root is that of every process until one asks for another. Who shares it with that one changes with it. */
static bool roots_differ;

static bool changes_root(const struct seccomp_data *call) {
#ifdef __x86_64__
  enum { I386_CHROOT = 61, I386_PIVOT_ROOT = 217, X32_BIT = 0x40000000 };
  if (call->arch == AUDIT_ARCH_I386) return call->nr == I386_CHROOT || call->nr == I386_PIVOT_ROOT;
  int number = call->nr & ~X32_BIT;
#else
  int number = call->nr;
#endif
  return number == __NR_chroot || number == __NR_pivot_root;
}

bool plain_watch(const struct seccomp_data *call) {
  bool is_one = changes_root(call);
  roots_differ = roots_differ || is_one;
  return is_one;
}

void plain_stop(void) { roots_differ = true; }
bool plain_holds(void) { return !roots_differ; }

bool plain_is(const char *path) {
  for (const char *at = path[0] == '/' ? path + 1 : path;; at++) {
    size_t length = strcspn(at, "/");
    if (length == 0 || (length == 1 && at[0] == '.') || (length == 2 && at[0] == '.' && at[1] == '.')) return false;
    at += length;
    if (*at == 0) return true;
  }
}

bool plain_is_gone(const char *path, size_t length) {
  static const char mark[] = " (deleted)";
  size_t mark_length = sizeof mark - 1;
  return length >= mark_length && memcmp(path + length - mark_length, mark, mark_length) == 0;
}

bool goes_up(const char *path) {
  for (const char *at = path; (at = strstr(at, "/..")) != NULL; at += 3) {
    if (at[3] == '/' || at[3] == 0) return true;
  }
  return false;
}

/* Where a path begins that is not absolute, with a slash behind it; 0 when that has no name. */
static size_t start_of(pid_t tid, int dir, char *out, size_t room) {
  char link[32] = "cwd";
  if (dir != AT_FDCWD) snprintf(link, sizeof link, "fd/%d", dir);
  size_t length = read_link(tid, link, out, room - 1);
  if (length == 0 || out[0] != '/' || plain_is_gone(out, length)) return 0;
  if (length > 1) out[length++] = '/';
  return length;
}

bool plain_look(const char *path, bool follows, struct place *place) {
  struct open_how how = {.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
  int fd = (int)syscall(__NR_openat2, AT_FDCWD, path, &how, sizeof how);
  if (fd < 0 && errno != ENOENT) return false;
  place->exists = fd >= 0 && fstat(fd, &place->stat) == 0;
  if (fd >= 0) close(fd);
  return place->exists == (fd >= 0) && !(follows && place->exists && S_ISLNK(place->stat.st_mode));
}

/* Without `.`, `..` and empty parts, which mean just that where no link is on the way: into place->path. */
static void spell(const char *path, struct place *place) {
  size_t length = 0;
  while (*(path += strspn(path, "/")) != 0) {
    size_t part = strcspn(path, "/");
    bool is_above = part == 2 && path[0] == '.' && path[1] == '.';
    if (is_above) {
      while (length > 0 && place->path[--length] != '/');
    } else if (part != 1 || path[0] != '.') {
      place->path[length++] = '/';
      memcpy(place->path + length, path, part);
      length += part;
    }
    path += part;
  }
  if (length == 0) place->path[length++] = '/';
  place->path[length] = 0;
  place->length = length;
}

bool find_plain_place(pid_t tid, int dir, const char *path, bool follows, struct place *place) {
  char joined[PATH_ROOM];
  if (roots_differ) return false;
  size_t before = path[0] == '/' ? 0 : start_of(tid, dir, joined, sizeof joined);
  size_t length = strlen(path);
  if ((before == 0 && path[0] != '/') || before + length >= sizeof joined) return false;
  memcpy(joined + before, path, length + 1);
  if (!plain_look(joined, follows, place)) return false;
  /* Of `a/../b` and of `a/..` it may be `a` that is not there. */
  if (!place->exists && goes_up(joined)) return false;
  spell(joined, place);
  place->moot = false;
  return place->known = true;
}
