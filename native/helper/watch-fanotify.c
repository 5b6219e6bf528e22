/*
 * One mark on the whole filesystem, which is there at once whatever the size of the tree, and tells which process it was. What
 * lies elsewhere on it is passed over. Needs root: the directories come as handles, which only root may open. See watch.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "watch.h"

/* Newer than the headers of some systems. */
#ifndef FAN_REPORT_DFID_NAME
#define FAN_REPORT_DFID_NAME 0x00000c00
#endif
#ifndef FAN_EVENT_INFO_TYPE_DFID_NAME
#define FAN_EVENT_INFO_TYPE_DFID_NAME 2
#endif
#ifndef FAN_RENAME
#define FAN_RENAME 0x10000000
#define FAN_EVENT_INFO_TYPE_OLD_DFID_NAME 10
#define FAN_EVENT_INFO_TYPE_NEW_DFID_NAME 12
#endif

enum { BATCH_BYTES = 64 * 1024, HANDLE_BYTES = 128 };

static int queue = -1, mount_fd = -1;

/* Whether a directory of this filesystem can be found again by its handle: not on every one, and not in every container. */
static bool handles_work(void) {
  union {
    struct file_handle handle;
    char room[sizeof(struct file_handle) + HANDLE_BYTES];
  } own = {.handle = {.handle_bytes = HANDLE_BYTES}};
  int mount_id;
  if (name_to_handle_at(mount_fd, "", &own.handle, &mount_id, AT_EMPTY_PATH) != 0) return false;
  int fd = open_by_handle_at(mount_fd, &own.handle, O_PATH | O_CLOEXEC);
  if (fd < 0) return false;
  close(fd);
  return true;
}

int fanotify_watch_open(void) {
  const uint64_t changes = FAN_MODIFY | FAN_CLOSE_WRITE | FAN_ATTRIB | FAN_CREATE | FAN_DELETE | FAN_RENAME | FAN_ONDIR;
  mount_fd = open(watch_root(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (mount_fd < 0) return -1;
  queue = fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK | FAN_REPORT_DFID_NAME, O_RDONLY);
  if (queue >= 0 && handles_work() &&
      fanotify_mark(queue, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, changes, mount_fd, ".") == 0)
    return queue;
  if (queue >= 0) close(queue);
  close(mount_fd);
  return queue = mount_fd = -1;
}

/* Where `info` points to now; false when it is gone, which is told by the end of a directory above it, or lies elsewhere. */
static bool find_path(const struct fanotify_event_info_fid *info, char *path, size_t room) {
  union {
    struct file_handle handle;
    char bytes[sizeof(struct file_handle) + HANDLE_BYTES];
  } directory;
  const struct file_handle *handle = (const void *)info->handle;
  if (handle->handle_bytes > HANDLE_BYTES) return false;
  memcpy(&directory, handle, sizeof *handle + handle->handle_bytes);
  const char *name = (const char *)handle->f_handle + handle->handle_bytes;
  int fd = open_by_handle_at(mount_fd, &directory.handle, O_PATH | O_CLOEXEC);
  if (fd < 0) return false;
  char link[64];
  struct stat stat;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = fstat(fd, &stat) == 0 && stat.st_nlink > 0 ? readlink(link, path, room - 1) : -1;
  close(fd);
  if (length <= 0 || (size_t)length + strlen(name) + 2 > room) return false;
  path[length] = 0;
  size_t root = strlen(watch_root());
  bool inside = strncmp(path, watch_root(), root) == 0 && (path[root] == '/' || path[root] == 0 || root == 1);
  if (!inside || watch_ignores(path, true)) return false;
  /* "." is the directory itself. */
  if (strcmp(name, ".") != 0) snprintf(path + length, room - (size_t)length, "%s%s", length == 1 ? "" : "/", name);
  return true;
}

static void tell(const struct fanotify_event_metadata *event) {
  static char path[WATCH_PATH_ROOM], to[WATCH_PATH_ROOM];
  bool has_path = false, has_to = false, directory = (event->mask & FAN_ONDIR) != 0;
  const char *end = (const char *)event + event->event_len;
  for (const char *at = (const char *)event + event->metadata_len; at < end;) {
    const struct fanotify_event_info_fid *info = (const void *)at;
    if (info->hdr.len == 0) break;
    at += info->hdr.len;
    if (info->hdr.info_type == FAN_EVENT_INFO_TYPE_NEW_DFID_NAME) has_to = find_path(info, to, sizeof to);
    else if (info->hdr.info_type == FAN_EVENT_INFO_TYPE_DFID_NAME || info->hdr.info_type == FAN_EVENT_INFO_TYPE_OLD_DFID_NAME)
      has_path = find_path(info, path, sizeof path);
  }
  pid_t pid = event->pid;
  if (pid == getpid()) return;
  if ((event->mask & FAN_RENAME) != 0) {
    if (has_path && has_to) watch_tell(OP_RENAME, path, to, directory, pid);
    else if (has_path) watch_tell(OP_DELETE, path, NULL, directory, pid);
    else if (has_to) watch_tell(OP_CREATE, to, NULL, directory, pid);
  }
  if (!has_path || has_to) return;
  /* What happened to the same name since the last look comes as one. */
  if ((event->mask & FAN_CREATE) != 0) watch_tell(OP_CREATE, path, NULL, directory, pid);
  if ((event->mask & (FAN_MODIFY | FAN_CLOSE_WRITE)) != 0) watch_tell(OP_SEEN, path, NULL, directory, pid);
  if ((event->mask & FAN_ATTRIB) != 0) watch_tell(OP_ATTRIBUTES, path, NULL, directory, pid);
  if ((event->mask & FAN_DELETE) != 0) watch_tell(OP_DELETE, path, NULL, directory, pid);
}

void fanotify_watch_read(void) {
  static _Alignas(struct fanotify_event_metadata) char batch[BATCH_BYTES];
  for (ssize_t length; (length = read(queue, batch, sizeof batch)) > 0 || (length < 0 && errno == EINTR);) {
    const struct fanotify_event_metadata *event = (const void *)batch;
    for (; length > 0 && FAN_EVENT_OK(event, length); event = FAN_EVENT_NEXT(event, length)) {
      if ((event->mask & FAN_Q_OVERFLOW) != 0) watch_tell_lost(LOST_OVERFLOW);
      else tell(event);
    }
  }
}
