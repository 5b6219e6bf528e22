/* By /proc, process by process from ourselves downwards. See holders.h. */
#define _GNU_SOURCE
#include "holders.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "mounts.h"
#include "tracee.h"

enum { MAX_PROCESSES = 65536 };
static const char deleted[] = " (deleted)";

struct look {
  struct stream *stream;
  struct frame *frame;
  pid_t *pids;
  size_t count;
  struct unseen unseen;
  bool other_mounts; /* of the process that is looked at: its paths are not ours, but the files may be */
};

/* A process that is gone holds nothing. */
static bool is_gone(int error) { return error == ENOENT || error == ESRCH; }

/* The 20th word behind the name; 0 when it is not there. */
static uint64_t started_ns(pid_t pid) {
  char text[1024];
  const char *at = read_text_file(pid, "stat", text, sizeof text) ? strrchr(text, ')') : NULL;
  for (int i = 0; i < 20 && at != NULL; i++) at = strchr(at + 1, ' ');
  struct timespec now;
  if (at == NULL || clock_gettime(CLOCK_BOOTTIME, &now) != 0) return 0;
  uint64_t tick_ns = 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK), booted = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
  /* The end of the tick: it is not younger than that. */
  return realtime_ns() - booted + (strtoull(at + 1, NULL, 10) + 1) * tick_ns;
}

/* `pid`: 0 when nobody knows which. */
static void note_unseen(struct look *look, pid_t pid) {
  uint64_t since = pid == 0 ? 0 : started_ns(pid);
  struct unseen *unseen = &look->unseen;
  unseen->unknown = unseen->unknown || since == 0;
  if (since > unseen->since_ns) unseen->since_ns = since;
  unseen->count++;
}

/* `inode`: 0 when the path is the file's only name. */
static void tell_held(struct look *look, pid_t pid, const char *path, size_t length, uint64_t inode, bool mapped) {
  frame_begin(look->frame, FRAME_HELD, 0, (uint32_t)pid);
  if (mapped) frame_flag(look->frame, FLAG_MAPPED);
  frame_bytes(look->frame, FIELD_PATH, path, length);
  if (inode != 0) frame_long(look->frame, FIELD_INODE, inode);
  stream_put(look->stream, look->frame);
}

/* The name by which it was opened; the file may have others. */
static bool is_deleted(const char *path, size_t length) {
  size_t tail = sizeof deleted - 1;
  return length > tail && memcmp(path + length - tail, deleted, tail) == 0;
}

static void add_children(struct look *look, pid_t pid, const char *thread) {
  char file[64 + NAME_MAX], word[16];
  snprintf(file, sizeof file, "/proc/%d/task/%s/children", pid, thread);
  FILE *list = fopen(file, "re");
  if (list == NULL) {
    if (!is_gone(errno)) note_unseen(look, pid);
    return;
  }
  while (look->count < MAX_PROCESSES && fscanf(list, "%15s", word) == 1) look->pids[look->count++] = atoi(word);
  fclose(list);
}

static void find_children(struct look *look, pid_t pid) {
  char directory[64];
  snprintf(directory, sizeof directory, "/proc/%d/task", pid);
  DIR *threads = opendir(directory);
  if (threads == NULL) return;
  for (struct dirent *entry; (entry = readdir(threads)) != NULL;) {
    if (isdigit((unsigned char)entry->d_name[0])) add_children(look, pid, entry->d_name);
  }
  closedir(threads);
}

static void look_at_descriptors(struct look *look, pid_t pid) {
  static char path[PATH_ROOM];
  snprintf(path, sizeof path, "/proc/%d/fd", pid);
  DIR *list = opendir(path);
  if (list == NULL) {
    if (!is_gone(errno)) note_unseen(look, pid);
    return;
  }
  int directory = dirfd(list);
  for (struct dirent *entry; (entry = readdir(list)) != NULL;) {
    struct stat stat;
    /* The mode of the link says what it was opened for. */
    if (!isdigit((unsigned char)entry->d_name[0])) continue;
    if (fstatat(directory, entry->d_name, &stat, AT_SYMLINK_NOFOLLOW) != 0 || (stat.st_mode & S_IWUSR) == 0) continue;
    if (fstatat(directory, entry->d_name, &stat, 0) != 0 || !S_ISREG(stat.st_mode) || stat.st_nlink == 0) continue;
    ssize_t length = readlinkat(directory, entry->d_name, path, sizeof path);
    if (length <= 0 || (size_t)length >= sizeof path || path[0] != '/') continue;
    bool has_others = look->other_mounts || stat.st_nlink > 1 || is_deleted(path, (size_t)length);
    tell_held(look, pid, path, (size_t)length, has_others ? stat.st_ino : 0, false);
  }
  closedir(list);
}

/* The device of a line of /proc/PID/maps; empty when there is none. */
static void device_of(const char *line, char device[16]) {
  if (sscanf(line, "%*s %*s %*s %15s", device) != 1) device[0] = 0;
}

/*
 * Shared memory without a name, and memfds, lie on a filesystem that nobody can mount: no name of theirs is in any
 * directory. The helper has such a page itself (notify_share), which tells the device.
 */
static const char *nameless_device(void) {
  static char device[16];
  static bool is_known;
  if (is_known) return device;
  is_known = true;
  char *line = NULL;
  size_t room = 0;
  FILE *maps = fopen("/proc/self/maps", "re");
  while (maps != NULL && getline(&line, &room, maps) > 0) {
    if (strstr(line, " /dev/zero (deleted)\n") != NULL) device_of(line, device);
  }
  free(line);
  if (maps != NULL) fclose(maps);
  return device;
}

/* A line of /proc/PID/maps: `start-end rwxp offset device inode path`, the path with newlines as \012. */
static void look_at_mapping(struct look *look, pid_t pid, char *line) {
  char *rights = strchr(line, ' '), device[16];
  if (rights == NULL || strnlen(rights, 5) < 5 || rights[2] != 'w' || rights[4] != 's') return;
  device_of(line, device);
  if (device[0] != 0 && strcmp(device, nameless_device()) == 0) return;
  char *from = strchr(rights, '/'), *to = from;
  if (from == NULL) return;
  char *inode = from;
  while (inode > rights && inode[-1] == ' ') inode--;
  while (inode > rights && inode[-1] != ' ') inode--;
  for (char *at = from; *at != 0 && *at != '\n'; at++) {
    if (strncmp(at, "\\012", 4) == 0) {
      *to++ = '\n';
      at += 3;
    } else *to++ = *at;
  }
  *to = 0;
  struct stat found;
  bool has_others = look->other_mounts || is_deleted(from, (size_t)(to - from)) || (stat(from, &found) == 0 && found.st_nlink > 1);
  tell_held(look, pid, from, (size_t)(to - from), has_others ? strtoull(inode, NULL, 10) : 0, true);
}

static void look_at_mappings(struct look *look, pid_t pid) {
  char file[64], *line = NULL;
  size_t room = 0;
  snprintf(file, sizeof file, "/proc/%d/maps", pid);
  FILE *maps = fopen(file, "re");
  if (maps == NULL) {
    if (!is_gone(errno)) note_unseen(look, pid);
    return;
  }
  while (getline(&line, &room, maps) > 0) look_at_mapping(look, pid, line);
  free(line);
  fclose(maps);
}

static bool is_zombie(pid_t pid) {
  char text[1024];
  const char *state = read_text_file(pid, "stat", text, sizeof text) ? strrchr(text, ')') : NULL;
  return state != NULL && strncmp(state, ") Z", 3) == 0;
}

/* Whose view of the process is to be asked for: that of its first thread is empty when only others are left. */
static pid_t live_thread(pid_t pid) {
  char directory[64];
  if (!is_zombie(pid)) return pid;
  snprintf(directory, sizeof directory, "/proc/%d/task", pid);
  DIR *threads = opendir(directory);
  if (threads == NULL) return pid;
  pid_t found = pid;
  for (struct dirent *entry; found == pid && (entry = readdir(threads)) != NULL;) {
    pid_t tid = atoi(entry->d_name);
    if (tid > 0 && tid != pid && !is_zombie(tid)) found = tid;
  }
  closedir(threads);
  return found;
}

struct unseen tell_holders(struct stream *stream, struct frame *frame) {
  static pid_t pids[MAX_PROCESSES];
  struct look look = {.stream = stream, .frame = frame, .pids = pids};
  find_children(&look, getpid());
  for (size_t i = 0; i < look.count; i++) {
    find_children(&look, pids[i]);
    pid_t seen = live_thread(pids[i]);
    look.other_mounts = mounts_are_expected() || mounts_differ(seen);
    look_at_descriptors(&look, seen);
    look_at_mappings(&look, seen);
  }
  if (look.count == MAX_PROCESSES) note_unseen(&look, 0);
  return look.unseen;
}
