/* By the same call of ours, from the same directory. See in-root.h. */
#define _GNU_SOURCE
#include "in-root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "newer-calls.h"

static int open_in(int root, const char *path, int flags) {
  struct open_how how = {.flags = (uint64_t)(flags | O_PATH | O_CLOEXEC), .resolve = RESOLVE_IN_ROOT};
  return (int)syscall(__NR_openat2, root, path, &how, sizeof how);
}

/* What is not there, or a link that is not followed, by the directory that it is in. */
static void find_entry(int root, const char *path, bool follows, struct place *place) {
  char above[PATH_ROOM];
  const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
  size_t length = (size_t)(name - path);
  if (*name == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || length >= sizeof above) return;
  memcpy(above, path, length);
  above[length] = 0;
  int parent = open_in(root, length == 0 ? "." : above, O_DIRECTORY);
  if (parent < 0) return;
  place->known = name_entry(parent, name, place);
  /* A link that leads to nothing: what would be made is not looked for. */
  if (follows && place->exists) place->known = false;
  close(parent);
}

void find_in_root(pid_t tid, int dir, const char *path, bool follows, struct place *place) {
  char start[64];
  place->known = place->exists = place->moot = false;
  place->length = 0;
  if (dir == AT_FDCWD) snprintf(start, sizeof start, "/proc/%d/cwd", tid);
  else snprintf(start, sizeof start, "/proc/%d/fd/%d", tid, dir);
  int root = open(start, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) return;
  int fd = open_in(root, path, follows ? 0 : O_NOFOLLOW);
  if (fd >= 0) {
    place->exists = fstat(fd, &place->stat) == 0;
    place->known = place->exists && name_descriptor(fd, &place->stat, place);
    close(fd);
  } else if (errno == ENOENT) find_entry(root, path, follows, place);
  close(root);
}
