/* A cache by the hash of the path as it is named. See record-known.h. */
#define _GNU_SOURCE
#include "record-known.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "plain.h"

enum { SLOTS = 1 << 16, DIRECTORIES = 64, OPEN = 8 };

static struct slot {
  uint64_t hash, check;
  const struct seen *seen;
  uint32_t generation, version;
  uint8_t asks;
} slots[SLOTS];

/* Where processes are. */
static struct directory {
  pid_t pid;
  uint32_t serial, generation;
  pid_t moving; /* the thread that was going elsewhere when it was seen last: where the others are is not certain until it calls again */
  size_t length;
  char path[PATH_ROOM];
} directories[DIRECTORIES];

/* What lists the descriptors of threads that called lately. It is of that thread for good, whoever gets its number. */
static struct {
  pid_t tid;
  int fd;
} open_lists[OPEN];

static uint32_t generation = 1;
static bool is_stopped;

void known_forget(void) { generation++; }
uint32_t known_generation(void) { return generation; }
void known_stop(void) { is_stopped = true; }

bool is_link_call(int number) {
#ifdef __NR_symlink
  if (number == __NR_symlink) return true;
#endif
  return number == __NR_symlinkat;
}

static struct directory *directory_of(const struct call *call) { return &directories[call->process->pid % DIRECTORIES]; }

void known_moves(const struct call *call) {
  struct directory *directory = directory_of(call);
  directory->pid = call->process->pid;
  directory->serial = call->process->serial;
  directory->generation = 0;
  directory->moving = tid_of(call);
}

static ssize_t read_from_list(int list, int fd, char *out, size_t room) {
  char name[16];
  snprintf(name, sizeof name, "%d", fd);
  return readlinkat(list, name, out, room - 1);
}

/* What a descriptor of the thread is, into `out`. As read_link does, without going through all of /proc each time. */
static size_t read_descriptor(pid_t tid, int fd, char *out, size_t room) {
  size_t slot = (size_t)tid % OPEN;
  bool is_open = open_lists[slot].tid == tid;
  ssize_t length = is_open ? read_from_list(open_lists[slot].fd, fd, out, room) : -1;
  if (length < 0) {
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/fd", tid);
    if (open_lists[slot].tid != 0) close(open_lists[slot].fd);
    open_lists[slot].fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    open_lists[slot].tid = open_lists[slot].fd < 0 ? 0 : tid;
    if (open_lists[slot].tid == 0) return 0;
    length = read_from_list(open_lists[slot].fd, fd, out, room);
  }
  if (length < 0) return 0;
  out[length] = 0;
  return (size_t)length;
}

/* The directory that the call starts from, into `out`; 0 when it has none with a name. */
static size_t start_of(const struct call *call, int dir, char *out, size_t room) {
  if (dir != AT_FDCWD) return read_descriptor(tid_of(call), dir, out, room);
  struct directory *directory = directory_of(call);
  bool is_own = directory->pid == call->process->pid && directory->serial == call->process->serial;
  if (is_own && directory->moving == tid_of(call)) directory->moving = 0;
  if (is_own && directory->moving != 0) return read_link(tid_of(call), "cwd", out, room);
  if (!is_own || directory->generation != generation) {
    directory->pid = call->process->pid;
    directory->serial = call->process->serial;
    directory->moving = 0;
    directory->generation = generation;
    directory->length = read_link(tid_of(call), "cwd", directory->path, sizeof directory->path);
  }
  if (directory->length >= room) return 0;
  memcpy(out, directory->path, directory->length + 1);
  return directory->length;
}

bool known_look_up(const struct call *call, const struct rule *rule, bool follows, struct known *known) {
  if (is_stopped || call->process->other_mounts || mounts_have_changed()) return false;
  char text[MAX_TEXT];
  ssize_t length = read_path(tid_of(call), argument(call, rule->path), text, sizeof text);
  if (length <= 0 || strncmp(text, "/proc/", 6) == 0 || strncmp(text, "/dev/", 5) == 0) return false;
  size_t before = 0;
  if (text[0] != '/') {
    before = start_of(call, rule->dir == CWD ? AT_FDCWD : (int)argument(call, rule->dir), known->path, sizeof known->path);
    if (before == 0 || known->path[0] != '/' || plain_is_gone(known->path, before)) return false;
    if (before > 1) known->path[before++] = '/';
  }
  if (before + (size_t)length >= sizeof known->path) return false;
  memcpy(known->path + before, text, (size_t)length + 1);
  known->length = before + (size_t)length;
  known->is_plain = plain_is(text);
  known->is_name = known->is_plain && before > 0 && strchr(text, '/') == NULL;
  known->asks = (uint8_t)(1 << (rule->op == OP_EXEC ? 0 : rule->op == OP_WRITE ? 1 : rule->op - OP_STAT + 2));
  uint64_t hash = 1469598103934665603u ^ follows, check = 88172645463325252u + follows;
  for (size_t i = 0; i < known->length; i++) {
    hash = (hash ^ (uint8_t)known->path[i]) * 1099511628211u;
    check = (check + (uint8_t)known->path[i]) * 6364136223846793005u + 1442695040888963407u;
  }
  known->hash = hash ^ (hash >> 31);
  known->check = check;
  return true;
}

bool known_is_told(const struct known *known) {
  const struct slot *slot = &slots[known->hash % SLOTS];
  if (slot->generation != generation || slot->hash != known->hash || slot->check != known->check) return false;
  if (slot->seen != NULL && slot->seen->version != slot->version) return false;
  return (slot->asks & known->asks) != 0;
}

void known_remember(const struct known *known, const struct seen *seen) {
  struct slot *slot = &slots[known->hash % SLOTS];
  uint32_t version = seen == NULL ? 0 : seen->version;
  bool is_same = slot->generation == generation && slot->hash == known->hash && slot->check == known->check &&
                 slot->seen == seen && slot->version == version;
  uint8_t asked = is_same ? slot->asks : 0;
  *slot = (struct slot){.hash = known->hash,
                        .check = known->check,
                        .seen = seen,
                        .generation = generation,
                        .version = version,
                        .asks = (uint8_t)(asked | known->asks)};
}
