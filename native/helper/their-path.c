/* Part by part, as the system does it, but from their root. See their-path.h. */
#define _GNU_SOURCE
#include "their-path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "mount-spot.h"
#include "newer-calls.h"
#include "tracee.h"

/* As many links as the system follows. */
enum { MAX_FOLLOWED = 40, TEXT_ROOM = 2 * PATH_ROOM, OPEN_PATH = O_PATH | O_CLOEXEC };

/* How much of a path names the descriptor it begins at; 0 when it is none of those. */
static size_t start_length(const char *path) {
  if (strncmp(path, "/proc/", 6) != 0) return 0;
  const char *at = path + 6 + strcspn(path + 6, "/");
  if (strncmp(at, "/root", 5) == 0) at += 5;
  else if (strncmp(at, "/cwd", 4) == 0) at += 4;
  else if (strncmp(at, "/fd/", 4) == 0) at += 4 + strcspn(at + 4, "/");
  else return 0;
  return *at == '/' ? (size_t)(at - path) : 0;
}

static bool is_on_proc(int fd) {
  struct statfs filesystem;
  return fstatfs(fd, &filesystem) == 0 && filesystem.f_type == PROC_SUPER_MAGIC;
}

/* What a link in /proc leads to: most are no text but the thing itself, and `self` is whoever asks. */
static int open_in_proc(pid_t tid, int at, const char *name) {
  char own[32];
  pid_t group = tid, parent;
  if (strcmp(name, "thread-self") != 0 && strcmp(name, "self") != 0) return openat(at, name, OPEN_PATH);
  if (strcmp(name, "self") == 0 && !find_parents(tid, &group, &parent)) return -1;
  snprintf(own, sizeof own, "/proc/%d", group);
  return open(own, OPEN_PATH);
}

struct walk {
  pid_t tid;
  int root, at, links;
  struct spot top;
  char text[TEXT_ROOM]; /* what is left to go, from `rest` on */
  char *rest;
};

static bool move_to(struct walk *walk, int next) {
  if (next < 0) return false;
  close(walk->at);
  walk->at = next;
  return true;
}

/* Goes on with the text of a link, before what is left. */
static bool follow(struct walk *walk, int link) {
  char target[PATH_ROOM];
  ssize_t length = readlinkat(link, "", target, sizeof target);
  if (length < 0) return false;
  size_t left = strlen(walk->rest) + 1;
  /* Too long for us, not for the system. */
  errno = ENOMEM;
  if (length == sizeof target || (size_t)length + 1 + left > TEXT_ROOM) return false;
  memmove(walk->text + length + 1, walk->rest, left);
  memcpy(walk->text, target, (size_t)length);
  walk->text[length] = '/';
  walk->rest = walk->text;
  return target[0] != '/' || move_to(walk, fcntl(walk->root, F_DUPFD_CLOEXEC, 0));
}

static bool step(struct walk *walk, const char *name) {
  struct spot here;
  struct stat stat;
  if (strcmp(name, ".") == 0) return true;
  if (strcmp(name, "..") == 0 && spot_look(walk->at, &here) && spot_is_same(&here, &walk->top)) return true;
  int next = openat(walk->at, name, OPEN_PATH | O_NOFOLLOW);
  if (next < 0 || fstat(next, &stat) != 0 || !S_ISLNK(stat.st_mode)) return move_to(walk, next);
  errno = ELOOP;
  bool is_done = false;
  if (++walk->links <= MAX_FOLLOWED)
    is_done = is_on_proc(walk->at) ? move_to(walk, open_in_proc(walk->tid, walk->at, name)) : follow(walk, next);
  int why = errno;
  close(next);
  errno = why;
  return is_done;
}

/* From `start`, which it closes. */
static int walk_from(pid_t tid, int start, int root, const struct spot *top, const char *path) {
  struct walk walk = {.tid = tid, .root = root, .at = start, .top = *top};
  bool goes_on = strlen(path) < sizeof walk.text;
  if (goes_on) strcpy(walk.text, path);
  else errno = ENOMEM;
  walk.rest = walk.text;
  while (goes_on && *(walk.rest += strspn(walk.rest, "/")) != 0) {
    char name[NAME_MAX + 1];
    size_t length = strcspn(walk.rest, "/");
    errno = ENAMETOOLONG;
    goes_on = length < sizeof name;
    if (!goes_on) break;
    memcpy(name, walk.rest, length);
    name[length] = 0;
    walk.rest += length;
    goes_on = step(&walk, name);
  }
  int why = errno;
  if (goes_on) return walk.at;
  close(walk.at);
  errno = why;
  return -1;
}

/* What is a directory, if one is asked for. */
static int checked(int fd, int flags) {
  struct stat stat;
  if (fd < 0 || (flags & O_DIRECTORY) == 0 || (fstat(fd, &stat) == 0 && S_ISDIR(stat.st_mode))) return fd;
  close(fd);
  errno = ENOTDIR;
  return -1;
}

/* Whether that is our root, too, so that the system may resolve what begins there. */
static bool is_own_root(const struct spot *top) {
  static _Thread_local struct spot own;
  if (own.inode == 0) {
    int fd = open("/", OPEN_PATH);
    if (fd < 0 || !spot_look(fd, &own)) own.inode = 0;
    if (fd >= 0) close(fd);
  }
  return spot_is_same(top, &own);
}

static int open_from(pid_t tid, int at, int root, const char *path, int flags) {
  struct open_how how = {.flags = (uint64_t)flags, .resolve = RESOLVE_NO_MAGICLINKS};
  struct spot top;
  if (!spot_look(root, &top)) return -1;
  if (is_own_root(&top)) {
    int fd = (int)syscall(__NR_openat2, at, path, &how, sizeof how);
    if (fd >= 0 || errno != ELOOP) return fd;
  }
  return checked(walk_from(tid, fcntl(at, F_DUPFD_CLOEXEC, 0), root, &top, path), flags);
}

int open_theirs(pid_t tid, const char *path, int flags) {
  char start[64];
  size_t length = start_length(path);
  if (length == 0 || length >= sizeof start) return open(path, flags);
  const char *rest = path + length + strspn(path + length, "/");
  if (*rest == 0) return open(path, flags);
  memcpy(start, path, length);
  start[length] = 0;
  int at = open(start, OPEN_PATH);
  snprintf(start, sizeof start, "/proc/%d/root", tid);
  int root = at < 0 ? -1 : open(start, OPEN_PATH);
  int fd = root < 0 ? -1 : open_from(tid, at, root, rest, flags), why = errno;
  if (root >= 0) close(root);
  if (at >= 0) close(at);
  errno = why;
  return fd;
}
