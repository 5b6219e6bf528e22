#define _GNU_SOURCE
#include "resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if __has_include(<linux/openat2.h>)
#include <linux/openat2.h>
#else
struct open_how {
  uint64_t flags, mode, resolve;
};
#define RESOLVE_NO_MAGICLINKS 0x02
#define RESOLVE_NO_SYMLINKS 0x04
#define RESOLVE_BENEATH 0x08
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif

/* The kernel takes paths below PATH_MAX (4096) only; longer ones are resolved in pieces of at most this many bytes. */
enum { MAX_PIECE_BYTES = 4000, MAX_BUSY_RETRIES = 64 };

static const int directory_flags = O_PATH | O_DIRECTORY | O_CLOEXEC;

/* Set once the kernel or a seccomp sandbox has refused openat2. Idempotent, so threads may race on it. */
static atomic_bool openat2_missing;

static int open_component(int base, const char *name) {
  int fd;
  do fd = openat(base, name, directory_flags | O_NOFOLLOW);
  while (fd < 0 && errno == EINTR);
  struct stat status;
  if (fd < 0 && errno == ENOTDIR) {
    // O_PATH opens a symlink itself and then reports that it is no directory; openat2 says ELOOP, and so do we.
    bool is_link = fstatat(base, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode);
    errno = is_link ? ELOOP : ENOTDIR;
  }
  return fd;
}

/* Without openat2: one component at a time. check_path has refused '..', so every step goes down. */
static int open_piece_stepwise(int base, char *piece) {
  int current = base;
  for (char *name = piece, *next; name != NULL; name = next) {
    next = strchr(name, '/');
    if (next != NULL) *next++ = 0;
    int fd = open_component(current, name);
    int error = errno;
    if (current != base) close(current);
    if (fd < 0) {
      errno = error;
      return -1;
    }
    current = fd;
  }
  return current;
}

static int open_piece(int base, char *piece) {
#ifndef SAVEPOINT_FORCE_FALLBACK
  if (!atomic_load_explicit(&openat2_missing, memory_order_relaxed)) {
    struct open_how how = {
        .flags = (uint64_t)directory_flags,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    for (int busy = 0; busy < MAX_BUSY_RETRIES; busy += errno == EAGAIN) {
      int fd = (int)syscall(SYS_openat2, base, piece, &how, sizeof how);
      if (fd >= 0) return fd;
      if (errno != EINTR && errno != EAGAIN) break;
    }
    // EPERM comes from sandboxes that refuse unknown calls; an O_PATH open needs no permission that gives it.
    if (errno != ENOSYS && errno != EPERM) return -1;
    atomic_store_explicit(&openat2_missing, true, memory_order_relaxed);
  }
#else
  (void)openat2_missing;
#endif
  return open_piece_stepwise(base, piece);
}

static int open_directory(int root, const char *path, size_t length) {
  int current = root;
  while (length > 0) {
    size_t take = length;
    if (take > MAX_PIECE_BYTES) {
      // check_path has made sure that components are short, so there is a slash.
      take = MAX_PIECE_BYTES;
      while (path[take] != '/') take--;
    }
    char piece[MAX_PIECE_BYTES + 1];
    memcpy(piece, path, take);
    piece[take] = 0;
    int fd = open_piece(current, piece);
    int error = errno;
    if (current != root) close(current);
    if (fd < 0) {
      errno = error;
      return -1;
    }
    current = fd;
    size_t consumed = take < length ? take + 1 : take;
    path += consumed;
    length -= consumed;
  }
  return current;
}

static int check_component(const char *name, size_t length) {
  if (length == 0 || (length == 1 && name[0] == '.') || (length == 2 && name[0] == '.' && name[1] == '.')) return EINVAL;
  if (memchr(name, 0, length) != NULL) return EINVAL;
  return length > MAX_NAME_BYTES ? ENAMETOOLONG : 0;
}

static int check_path(const char *path, size_t length) {
  if (length == 0) return 0;
  for (const char *end = path + length;;) {
    const char *slash = memchr(path, '/', (size_t)(end - path));
    int error = check_component(path, (size_t)((slash == NULL ? end : slash) - path));
    if (error != 0) return error;
    if (slash == NULL) return 0;
    path = slash + 1;
  }
}

void resolver_init(struct resolver *resolver, int root) {
  *resolver = (struct resolver){.root = root, .parent = -1};
}

static void forget_parent(struct resolver *resolver) {
  if (resolver->parent >= 0 && resolver->parent != resolver->root) close(resolver->parent);
  resolver->parent = -1;
}

void resolver_close(struct resolver *resolver) {
  int error = errno;
  forget_parent(resolver);
  free(resolver->directory);
  resolver->directory = NULL;
  resolver->directory_room = 0;
  errno = error;
}

static int enter_directory(struct resolver *resolver, const char *path, size_t length) {
  if (resolver->parent >= 0 && resolver->directory_length == length &&
      (length == 0 || memcmp(resolver->directory, path, length) == 0)) {
    return 0;
  }
  forget_parent(resolver);
  if (resolver->root < 0) return EBADF; // AT_FDCWD among them
  int error = check_path(path, length);
  if (error != 0) return error;
  if (resolver->directory_room < length) {
    char *grown = realloc(resolver->directory, length * 2);
    if (grown == NULL) return ENOMEM;
    resolver->directory = grown;
    resolver->directory_room = length * 2;
  }
  resolver->parent = open_directory(resolver->root, path, length);
  if (resolver->parent < 0) return errno;
  if (length > 0) memcpy(resolver->directory, path, length);
  resolver->directory_length = length;
  return 0;
}

int resolve(struct resolver *resolver, const char *path, size_t length) {
  const char *slash = length > 0 ? memrchr(path, '/', length) : NULL;
  const char *name = slash == NULL ? path : slash + 1;
  size_t name_length = (size_t)(path + length - name);
  if (length > 0) {
    int error = check_component(name, name_length);
    if (error == 0 && slash == path) error = EINVAL; // absolute
    if (error != 0) return error;
  }
  int error = enter_directory(resolver, path, slash == NULL ? 0 : (size_t)(slash - path));
  if (error != 0) return error;
  if (length == 0) {
    memcpy(resolver->name, ".", 2);
  } else {
    memcpy(resolver->name, name, name_length);
    resolver->name[name_length] = 0;
  }
  return 0;
}

int open_resolved(const struct resolver *resolver, int flags, unsigned mode) {
  int fd;
  do fd = openat(resolver->parent, resolver->name, flags | O_NOFOLLOW | O_CLOEXEC, mode);
  while (fd < 0 && errno == EINTR);
  return fd;
}

void path_list_init(struct path_list *list, const uint8_t *bytes, size_t length) {
  *list = (struct path_list){.at = bytes == NULL ? "" : (const char *)bytes, .left = length};
}

bool path_list_next(struct path_list *list, const char **path, size_t *length) {
  if (list->done) return false;
  const char *end = list->left > 0 ? memchr(list->at, 0, list->left) : NULL;
  *path = list->at;
  *length = end == NULL ? list->left : (size_t)(end - list->at);
  if (end == NULL) {
    list->done = true;
  } else {
    list->left -= *length + 1;
    list->at = end + 1;
  }
  return true;
}
