/*
 * A watch per directory. A directory that comes into being is listed once it is watched, because what was made in it before
 * would not be told. Nothing says who it was. See watch.h.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "watch.h"
#include "watched-directories.h"

enum { BATCH_BYTES = 64 * 1024 };
static const uint32_t changes = IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                                IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK;

static int queue = -1;
static uint64_t mount_id;
static struct directory *root;
static bool is_limit_told;
/* The first half of a rename; the second one follows at once if it stays in the target. */
static struct {
  uint32_t cookie;
  bool directory;
  char path[WATCH_PATH_ROOM];
} leaving;

static void tell_limit(void) {
  if (!is_limit_told) watch_tell_lost(LOST_WATCHES);
  is_limit_told = true;
}

/* Watches what lies at `path`, or only learns that what was watched lies there now. NULL when it is no directory any more. */
static struct directory *watch(struct directory *parent, const char *name, const char *path) {
  int number = inotify_add_watch(queue, path, changes);
  if (number < 0) {
    /* What may not be read is listed again when its mode changes. */
    if (errno == ENOSPC || errno == ENOMEM || errno == ENAMETOOLONG) tell_limit();
    return NULL;
  }
  errno = 0;
  struct directory *directory = directory_place(number, parent, name);
  if (directory == NULL && errno == ENOMEM) tell_limit();
  return directory;
}

static bool is_entered(int dir, const char *name) {
  struct statx stat;
  if (statx(dir, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_TYPE | STATX_MNT_ID, &stat) != 0) return false;
  return S_ISDIR(stat.stx_mode) && ((stat.stx_mask & STATX_MNT_ID) == 0 || stat.stx_mnt_id == mount_id);
}

/* A list of directories whose entries have not been looked at. They are named by number: one may end meanwhile. */
struct work {
  int *numbers;
  size_t count, room;
};

static void push(struct work *work, int number) {
  if (work->count == work->room) {
    size_t room = work->room == 0 ? 256 : work->room * 2;
    int *numbers = realloc(work->numbers, room * sizeof *numbers);
    if (numbers == NULL) {
      tell_limit();
      return;
    }
    work->numbers = numbers;
    work->room = room;
  }
  work->numbers[work->count++] = number;
}

/* Watches all below; with `tells`, what is found there has come just now. */
static void watch_below(struct directory *top, bool tells) {
  static char path[WATCH_PATH_ROOM], child_path[WATCH_PATH_ROOM];
  struct work work = {0};
  push(&work, top->number);
  while (work.count > 0) {
    struct directory *directory = directory_find(work.numbers[--work.count]);
    if (directory == NULL || !directory_path(directory, NULL, path)) continue;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    if (list == NULL) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENAMETOOLONG) tell_limit();
      if (fd >= 0) close(fd);
      continue;
    }
    for (struct dirent *entry; (entry = readdir(list)) != NULL;) {
      if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
      if (!directory_path(directory, entry->d_name, child_path)) {
        tell_limit();
        continue;
      }
      bool may_enter = entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN;
      bool enters = may_enter && is_entered(fd, entry->d_name) && !watch_ignores(child_path, false);
      if (tells) watch_tell(OP_SEEN, child_path, NULL, entry->d_type == DT_DIR, 0);
      struct directory *child = enters ? watch(directory, entry->d_name, child_path) : NULL;
      if (child != NULL) push(&work, child->number);
    }
    closedir(list);
  }
  free(work.numbers);
}

int inotify_watch_open(void) {
  struct statx stat;
  queue = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (queue < 0) return -1;
  if (statx(AT_FDCWD, watch_root(), AT_SYMLINK_NOFOLLOW, STATX_MNT_ID, &stat) == 0) mount_id = stat.stx_mnt_id;
  root = watch(NULL, "", watch_root());
  if (root == NULL) {
    close(queue);
    return queue = -1;
  }
  watch_below(root, false);
  return queue;
}

/* What was moved away and did not come back into the tree: nobody is interested any more. */
static void drop_moved(void) {
  for (struct directory *top; (top = directory_next_moved()) != NULL;) {
    struct work work = {0};
    push(&work, top->number);
    while (work.count > 0) {
      struct directory *directory = directory_find(work.numbers[--work.count]);
      if (directory == NULL) continue;
      for (struct directory *child = directory->first; child != NULL; child = child->after) push(&work, child->number);
      inotify_rm_watch(queue, directory->number);
      directory_forget(directory);
    }
    free(work.numbers);
  }
}

static void tell_left(void) {
  if (leaving.cookie != 0) watch_tell(OP_DELETE, leaving.path, NULL, leaving.directory, 0);
  leaving.cookie = 0;
}

static void leave(struct directory *directory, const struct inotify_event *event, const char *path) {
  leaving.cookie = event->cookie;
  leaving.directory = (event->mask & IN_ISDIR) != 0;
  strcpy(leaving.path, path);
  struct directory *child = leaving.directory ? directory_child(directory, event->name) : NULL;
  if (child != NULL) directory_move_away(child);
}

/* A directory has come, or may be read now. */
static void enter(struct directory *parent, const char *name, const char *path, bool tells) {
  if (watch_ignores(path, false) || !is_entered(AT_FDCWD, path)) return;
  struct directory *directory = watch(parent, name, path);
  if (directory != NULL) watch_below(directory, tells);
}

static void handle(const struct inotify_event *event) {
  static char path[WATCH_PATH_ROOM];
  bool is_directory = (event->mask & IN_ISDIR) != 0;
  if ((event->mask & IN_Q_OVERFLOW) != 0) {
    watch_tell_lost(LOST_OVERFLOW);
    if (root != NULL) watch_below(root, false);
    return;
  }
  struct directory *directory = directory_find(event->wd);
  if (directory == NULL) return;
  if (directory == root && (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT)) != 0) {
    /* What comes in its place is not watched. */
    tell_limit();
    return;
  }
  if ((event->mask & IN_IGNORED) != 0) {
    directory_forget(directory);
    return;
  }
  /* Of the directory itself its parent tells. */
  if (event->len == 0 || !directory_path(directory, event->name, path)) return;
  if ((event->mask & IN_MOVED_FROM) != 0) {
    tell_left();
    leave(directory, event, path);
    return;
  }
  bool comes_back = (event->mask & IN_MOVED_TO) != 0 && leaving.cookie != 0 && leaving.cookie == event->cookie;
  if (comes_back) {
    leaving.cookie = 0;
    watch_tell(OP_RENAME, leaving.path, path, is_directory, 0);
  } else tell_left();
  if ((event->mask & IN_CREATE) != 0 || ((event->mask & IN_MOVED_TO) != 0 && !comes_back))
    watch_tell(OP_CREATE, path, NULL, is_directory, 0);
  if ((event->mask & (IN_MODIFY | IN_CLOSE_WRITE)) != 0) watch_tell(OP_SEEN, path, NULL, is_directory, 0);
  if ((event->mask & IN_ATTRIB) != 0) watch_tell(OP_ATTRIBUTES, path, NULL, is_directory, 0);
  if ((event->mask & IN_DELETE) != 0) watch_tell(OP_DELETE, path, NULL, is_directory, 0);
  bool may_be_new = (event->mask & (IN_CREATE | IN_MOVED_TO)) != 0 ||
                    ((event->mask & IN_ATTRIB) != 0 && directory_child(directory, event->name) == NULL);
  if (is_directory && may_be_new) enter(directory, event->name, path, !comes_back);
}

void inotify_watch_read(void) {
  static _Alignas(struct inotify_event) char batch[BATCH_BYTES];
  for (ssize_t length; (length = read(queue, batch, sizeof batch)) > 0 || (length < 0 && errno == EINTR);) {
    for (char *at = batch; length > 0 && at < batch + length;) {
      const struct inotify_event *event = (const void *)at;
      handle(event);
      at += sizeof *event + event->len;
    }
  }
  tell_left();
  drop_moved();
}
