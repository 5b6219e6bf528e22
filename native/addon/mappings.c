/*
 * Which files processes can write by storing to memory. Where the kernel answers PROCMAP_QUERY (6.11) it is asked for just
 * those mappings; elsewhere the text of /proc/PID/maps is read, which takes about a microsecond for each mapping there is.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "addon.h"
#include "napi-util.h"

/* Of linux/fs.h, which may be older than the kernel. */
struct mapping_query {
  uint64_t size, flags, address, start, end, rights, page_size, offset, inode;
  uint32_t major, minor, name_size, build_id_size;
  uint64_t name, build_id;
};
#define MAPPING_QUERY _IOWR('f', 17, struct mapping_query)
enum { QUERY_WRITABLE = 0x02, QUERY_SHARED = 0x08, QUERY_OR_NEXT = 0x10, QUERY_OF_FILE = 0x20 };

/* MAPPING of src/native/mapping-calls.ts; the path follows. */
struct mapping {
  uint32_t major, minor;
  uint64_t inode;
  uint32_t path_length, reserved;
};

struct found {
  uint8_t *bytes;
  size_t length, room;
  struct mapping last; /* a program maps one file in many pieces */
  bool failed;
};

static void add(struct found *found, struct mapping mapping, const char *path) {
  struct mapping *last = &found->last;
  if (last->inode == mapping.inode && last->major == mapping.major && last->minor == mapping.minor) return;
  *last = mapping;
  size_t needed = found->length + sizeof mapping + mapping.path_length;
  if (needed > found->room) {
    uint8_t *grown = realloc(found->bytes, needed * 2);
    if (grown == NULL) {
      found->failed = true;
      return;
    }
    found->bytes = grown;
    found->room = needed * 2;
  }
  memcpy(found->bytes + found->length, &mapping, sizeof mapping);
  memcpy(found->bytes + found->length + sizeof mapping, path, mapping.path_length);
  found->length = needed;
}

/* Whether the kernel answers such questions. A thread that has no memory any more has no mappings. */
static bool query(struct found *found, int maps) {
  for (uint64_t from = 0;;) {
    struct mapping_query asked = {.size = sizeof asked, .address = from};
    asked.flags = QUERY_WRITABLE | QUERY_SHARED | QUERY_OR_NEXT | QUERY_OF_FILE;
    if (ioctl(maps, MAPPING_QUERY, &asked) != 0) return errno != ENOTTY && errno != EINVAL;
    add(found, (struct mapping){.major = asked.major, .minor = asked.minor, .inode = asked.inode}, "");
    from = asked.end;
  }
}

/* `start-end rwxp offset major:minor inode path`, the path with newlines as \012. */
static void add_line(struct found *found, char *line) {
  struct mapping mapping = {0};
  char *rights = strchr(line, ' ');
  int path_at = 0;
  if (rights == NULL || strnlen(rights, 5) < 5 || rights[2] != 'w' || rights[4] != 's') return;
  if (sscanf(rights, " %*s %*s %" SCNx32 ":%" SCNx32 " %" SCNu64 " %n", &mapping.major, &mapping.minor, &mapping.inode,
             &path_at) < 3) {
    return;
  }
  char *path = rights + path_at, *to = path;
  for (char *at = path; path_at > 0 && *at != 0 && *at != '\n'; at++) {
    bool is_newline = strncmp(at, "\\012", 4) == 0;
    *to++ = is_newline ? '\n' : *at;
    if (is_newline) at += 3;
  }
  mapping.path_length = (uint32_t)(to - path);
  add(found, mapping, path);
}

/* Whether there was any. */
static bool read_text(struct found *found, int maps) {
  int copy = fcntl(maps, F_DUPFD_CLOEXEC, 3);
  FILE *file = copy < 0 ? NULL : fdopen(copy, "r");
  if (file == NULL) {
    if (copy >= 0) close(copy);
    found->failed = true;
    return true;
  }
  char *line = NULL;
  size_t room = 0;
  bool is_any = false;
  while (getline(&line, &room, file) > 0) {
    is_any = true;
    add_line(found, line);
  }
  free(line);
  fclose(file);
  return is_any;
}

static DIR *open_list(int parent, const char *name) {
  int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *list = fd < 0 ? NULL : fdopendir(fd);
  if (list == NULL && fd >= 0) close(fd);
  return list;
}

/*
 * A process, or one thread of it. False: it has no memory, because it is of the kernel, or that thread has ended. `by_text` becomes
 * true where the kernel does not answer.
 */
static bool look_at(struct found *found, int parent, const char *id, bool *by_text) {
  char name[NAME_MAX + sizeof "/maps"];
  snprintf(name, sizeof name, "%s/maps", id);
  // Gone by now, or another user's.
  int maps = openat(parent, name, O_RDONLY | O_CLOEXEC);
  if (maps < 0) return errno != ESRCH;
  errno = 0;
  *by_text = *by_text || !query(found, maps);
  bool has_memory = errno != ESRCH;
  if (*by_text) has_memory = read_text(found, maps);
  close(maps);
  return has_memory;
}

/* The memory is there as long as any thread goes on; of the process itself only the first one tells. */
static void look_at_threads(struct found *found, int proc, const char *pid, bool *by_text) {
  enum { LINKS_WITH_ONE_THREAD = 3 };
  char name[NAME_MAX + sizeof "/task"];
  struct stat tasks;
  snprintf(name, sizeof name, "%s/task", pid);
  if (fstatat(proc, name, &tasks, 0) != 0 || tasks.st_nlink <= LINKS_WITH_ONE_THREAD) return;
  DIR *threads = open_list(proc, name);
  if (threads == NULL) return;
  bool is_told = false;
  for (struct dirent *entry; !is_told && (entry = readdir(threads)) != NULL;) {
    if (isdigit((unsigned char)entry->d_name[0])) is_told = look_at(found, dirfd(threads), entry->d_name, by_text);
  }
  closedir(threads);
}

static int look(struct found *found, bool by_text) {
  DIR *list = open_list(AT_FDCWD, "/proc");
  if (list == NULL) return errno;
  int proc = dirfd(list);
  for (struct dirent *entry; (entry = readdir(list)) != NULL;) {
    if (!isdigit((unsigned char)entry->d_name[0])) continue;
    if (!look_at(found, proc, entry->d_name, &by_text)) look_at_threads(found, proc, entry->d_name, &by_text);
  }
  closedir(list);
  return found->failed ? ENOMEM : 0;
}

napi_value addon_shared_mappings(napi_env env, napi_callback_info info) {
  napi_value arguments[1];
  bool by_text;
  if (!get_arguments(env, info, 1, arguments) || !get_bool(env, arguments[0], &by_text)) return NULL;
  struct found found = {0};
  int error = look(&found, by_text);
  if (error == 0) {
    napi_value result = make_buffer_copy(env, found.bytes, found.length);
    free(found.bytes);
    return result;
  }
  free(found.bytes);
  throw_errno(env, error, "open", NULL, 0);
  return NULL;
}
