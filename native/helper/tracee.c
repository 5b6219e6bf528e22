/* Paths in the view of another process, by the magic links in /proc. See tracee.h. */
#define _GNU_SOURCE
#include "tracee.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "plain.h"
#include "their-path.h"

enum { PAGE = 4096, SHORT = 256, WINDOWS = 4, MAX_LINKS = 16, JOINED_ROOM = PATH_ROOM + 64 };

/* Pages of its memory that were read. What is looked at together often lies together: the arguments of an execution. */
static _Thread_local struct window {
  pid_t tid;
  uint64_t page;
  char bytes[PAGE];
} windows[WINDOWS];
static _Thread_local unsigned next_window;

void forget_memory(void) {
  for (size_t i = 0; i < WINDOWS; i++) windows[i].tid = 0;
}

bool memory_is_shut(pid_t tid) {
  char byte;
  struct iovec local = {.iov_base = &byte, .iov_len = 1}, remote = {.iov_base = NULL, .iov_len = 1};
  /* That there is nothing at the address is said only to whoever may look. */
  return process_vm_readv(tid, &local, 1, &remote, 1, 0) < 0 && errno == EPERM;
}

static const char *page_of(pid_t tid, uint64_t page) {
  for (size_t i = 0; i < WINDOWS; i++) {
    if (windows[i].tid == tid && windows[i].page == page) return windows[i].bytes;
  }
  struct window *window = &windows[next_window++ % WINDOWS];
  struct iovec local = {.iov_base = window->bytes, .iov_len = PAGE};
  struct iovec remote = {.iov_base = (void *)(uintptr_t)page, .iov_len = PAGE};
  window->tid = process_vm_readv(tid, &local, 1, &remote, 1, 0) == PAGE ? tid : 0;
  window->page = page;
  return window->tid == 0 ? NULL : window->bytes;
}

size_t read_memory(pid_t tid, uint64_t address, void *out, size_t length) {
  size_t done = 0;
  /* By page: one that is not there must not hide those before it. */
  while (done < length) {
    size_t offset = (address + done) % PAGE, part = PAGE - offset;
    if (part > length - done) part = length - done;
    const char *bytes = page_of(tid, address + done - offset);
    if (bytes == NULL) break;
    memcpy((char *)out + done, bytes + offset, part);
    done += part;
  }
  return done;
}

ssize_t read_text(pid_t tid, uint64_t address, char *out, size_t room) {
  if (address == 0) return -1;
  size_t done = 0;
  while (done < room) {
    /* Most texts are short: the first look is small. */
    size_t part = done == 0 ? SHORT : PAGE;
    size_t to_page_end = PAGE - (address + done) % PAGE;
    if (part > to_page_end) part = to_page_end;
    if (part > room - done) part = room - done;
    if (read_memory(tid, address + done, out + done, part) < part) return -1;
    const char *end = memchr(out + done, 0, part);
    if (end != NULL) return end - out;
    done += part;
  }
  return -1;
}

ssize_t read_path(pid_t tid, uint64_t address, char *out, size_t room) {
  size_t part = PAGE - address % PAGE;
  if (part > SHORT) part = SHORT;
  struct iovec local = {.iov_base = out, .iov_len = part < room ? part : room};
  struct iovec remote = {.iov_base = (void *)(uintptr_t)address, .iov_len = local.iov_len};
  ssize_t got = process_vm_readv(tid, &local, 1, &remote, 1, 0);
  const char *end = got <= 0 ? NULL : memchr(out, 0, (size_t)got);
  return end != NULL ? end - out : read_text(tid, address, out, room);
}

/* Whether the name by which something was opened is one of its names still: it may have others, and a name may end like this mark. */
static bool has_name(const char *path, size_t length, const struct stat *stat) {
  struct stat now;
  if (stat->st_nlink == 0) return false;
  if (!plain_is_gone(path, length)) return true;
  return lstat(path, &now) == 0 && now.st_ino == stat->st_ino && now.st_dev == stat->st_dev;
}

bool name_as_shown(const char *link, struct place *place) {
  static const char mark[] = " (deleted)";
  ssize_t length = readlink(link, place->path, PATH_ROOM - 1);
  place->length = length <= 0 ? 0 : (size_t)length;
  if (plain_is_gone(place->path, place->length) && !has_name(place->path, place->length, &place->stat)) place->length -= sizeof mark - 1;
  place->path[place->length] = 0;
  return place->length > 0;
}

bool name_descriptor(int fd, const struct stat *stat, struct place *place) {
  char link[32];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, place->path, PATH_ROOM - 1);
  if (length <= 0 || place->path[0] != '/') return false;
  place->path[length] = 0;
  place->length = (size_t)length;
  return has_name(place->path, place->length, stat);
}

/* What stands before a path of the tracee so that it means the same to us. */
static size_t base_of(pid_t tid, int dir, const char *path, char *out, size_t room) {
  if (path[0] == '/') return (size_t)snprintf(out, room, "/proc/%d/root", tid);
  if (dir == AT_FDCWD) return (size_t)snprintf(out, room, "/proc/%d/cwd/", tid);
  return (size_t)snprintf(out, room, "/proc/%d/fd/%d/", tid, dir);
}

bool name_entry(int parent, const char *name, struct place *place) {
  struct stat stat;
  if (fstat(parent, &stat) != 0) return false;
  /* In a directory that is deleted nothing can be made. */
  place->moot = stat.st_nlink == 0;
  if (!name_descriptor(parent, &stat, place)) return false;
  size_t length = strlen(name);
  if (place->length + length + 2 > PATH_ROOM) return false;
  if (place->length > 1) place->path[place->length++] = '/';
  memcpy(place->path + place->length, name, length + 1);
  place->length += length;
  place->exists = fstatat(parent, name, &place->stat, AT_SYMLINK_NOFOLLOW) == 0;
  place->shut = !place->exists && errno == EACCES;
  return true;
}

/* Names what lies in a directory that does not exist (yet: another may make it before the call goes on). */
static bool name_missing(pid_t tid, char *joined, struct place *place) {
  for (char *end = strrchr(joined, '/'); end > joined; end--) {
    if (*end != '/') continue;
    char saved = end[1];
    end[1] = 0;
    int ancestor = open_theirs(tid, joined, O_PATH | O_DIRECTORY | O_CLOEXEC);
    end[1] = saved;
    if (ancestor < 0) continue;
    const char *rest = end + strspn(end, "/");
    bool is_named = !goes_up(end) && name_entry(ancestor, rest, place);
    close(ancestor);
    place->exists = false;
    return is_named;
  }
  return false;
}

/* By the error of opening it: the call will fail likewise. Not where only what stands before it for us makes it too long. */
static bool leads_nowhere(const char *joined) {
  return errno == ENOTDIR || errno == ELOOP || (errno == ENAMETOOLONG && strlen(joined) < PATH_MAX);
}

static void find_joined(pid_t tid, char *joined, bool follows, struct place *place, int links);

static void find_in_parent(pid_t tid, char *joined, bool follows, struct place *place, int links) {
  char *slash = strrchr(joined, '/');
  char *name = slash + 1;
  /* The slash stays: without it the magic link itself would be meant. */
  char saved = *name;
  *name = 0;
  int parent = open_theirs(tid, joined, O_PATH | O_DIRECTORY | O_CLOEXEC);
  *name = saved;
  if (parent < 0) {
    place->moot = leads_nowhere(joined);
    if (errno == ENOENT) place->known = name_missing(tid, joined, place);
    return;
  }
  place->known = name_entry(parent, name, place);
  if (place->known && follows && place->exists && S_ISLNK(place->stat.st_mode) && links < MAX_LINKS) {
    char target[PATH_ROOM], next[JOINED_ROOM];
    ssize_t length = readlinkat(parent, name, target, sizeof target - 1);
    place->known = false;
    if (length > 0) {
      target[length] = 0;
      int before = target[0] == '/' ? snprintf(next, sizeof next, "/proc/%d/root", tid)
                                    : snprintf(next, sizeof next, "/proc/self/fd/%d/", parent);
      if ((size_t)before + (size_t)length < sizeof next) {
        memcpy(next + before, target, (size_t)length + 1);
        find_joined(tid, next, follows, place, links + 1);
      }
    }
  }
  close(parent);
}

static void find_joined(pid_t tid, char *joined, bool follows, struct place *place, int links) {
  size_t length = strlen(joined);
  bool names_directory = joined[length - 1] == '/';
  while (length > 1 && joined[length - 1] == '/') joined[--length] = 0;
  const char *name = strrchr(joined, '/') + 1;
  bool is_dots = strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
  if (follows || is_dots) {
    int fd = open_theirs(tid, joined, O_PATH | O_CLOEXEC);
    if (fd >= 0) {
      place->exists = fstat(fd, &place->stat) == 0;
      place->known = name_descriptor(fd, &place->stat, place);
      /* `/proc/self/fd/3` of what is deleted. */
      place->moot = place->exists && place->stat.st_nlink == 0;
      close(fd);
      return;
    }
    place->moot = leads_nowhere(joined);
    if (errno != ENOENT) return;
  }
  find_in_parent(tid, joined, follows || names_directory, place, links);
}

/* Paths that mean another thing for whoever uses them; `own` has room for what is put in the place of the beginning. */
static const char *without_self(pid_t tid, const char *path, char *own, size_t room) {
  static const struct {
    const char *start, *meaning;
  } starts[] = {{"/proc/thread-self/", "/"}, {"/proc/self/", "/"},       {"/dev/fd/", "/fd/"},
                {"/dev/stdin", "/fd/0"},     {"/dev/stdout", "/fd/1"},   {"/dev/stderr", "/fd/2"}};
  for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
    size_t length = strlen(starts[i].start);
    if (strncmp(path, starts[i].start, length) != 0) continue;
    /* All but the first mean the process, of which a thread may have left the directory and the descriptors. */
    pid_t group = tid, parent;
    if (i > 0) find_parents(tid, &group, &parent);
    int written = snprintf(own, room, "/proc/%d%s%s", group, starts[i].meaning, path + length);
    return written > 0 && (size_t)written < room ? own : path;
  }
  return path;
}

/* How we reach what the path means to the thread; false when it is empty, or longer than any. */
static bool join(pid_t tid, int dir, const char *path, char joined[JOINED_ROOM]) {
  char own[JOINED_ROOM];
  path = without_self(tid, path, own, sizeof own);
  size_t length = strlen(path);
  if (length == 0) return false;
  size_t before = base_of(tid, dir, path, joined, JOINED_ROOM);
  if (before + length >= JOINED_ROOM) return false;
  memcpy(joined + before, path, length + 1);
  /* Without a name in it the magic link would be taken for the last part. */
  if (strspn(path, "/") == length) strcpy(joined + before, "/.");
  return true;
}

void find_place(pid_t tid, int dir, const char *path, bool follows, struct place *place) {
  char joined[JOINED_ROOM];
  place->known = place->exists = place->moot = false;
  place->length = 0;
  if (join(tid, dir, path, joined)) find_joined(tid, joined, follows, place, 0);
}

int open_place(pid_t tid, int dir, const char *path) {
  char joined[JOINED_ROOM];
  if (*path != 0) return join(tid, dir, path, joined) ? open_theirs(tid, joined, O_PATH | O_CLOEXEC) : -1;
  snprintf(joined, sizeof joined, "/proc/%d/fd/%d", tid, dir);
  return open(joined, O_PATH | O_CLOEXEC);
}

void find_descriptor(pid_t tid, int fd, struct place *place) {
  char link[64];
  place->known = place->exists = false;
  place->length = 0;
  snprintf(link, sizeof link, "/proc/%d/fd/%d", tid, fd);
  place->moot = stat(link, &place->stat) != 0;
  if (place->moot) return;
  place->exists = true;
  ssize_t length = readlink(link, place->path, PATH_ROOM - 1);
  place->moot = length <= 0 || place->path[0] != '/';
  if (place->moot) return;
  place->path[length] = 0;
  place->length = (size_t)length;
  place->known = has_name(place->path, place->length, &place->stat);
  place->moot = !place->known;
}
