/* From notifications to frames. See notify.h. */
#define _GNU_SOURCE
#include "notify.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "executions.h"
#include "holds.h"
#include "keep.h"
#include "processes.h"
#include "program.h"
#include "protect.h"
#include "syscalls.h"

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif
#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

enum { MAX_TEXT = PATH_ROOM };

/* The call that is being looked at. */
struct call {
  struct notifier *notifier;
  const struct seccomp_notif *notification;
  struct process *process;
  struct frame *frame;
  bool held;    /* set when it is not to go on yet */
  bool refused; /* set when it is to fail */
};

static uint64_t argument(const struct call *call, int index) { return call->notification->data.args[index]; }
static pid_t tid_of(const struct call *call) { return (pid_t)call->notification->pid; }

/* Whether the thread still waits in this call: if not, what was read may be another's. */
static bool still_waits(const struct call *call) {
  uint64_t id = call->notification->id;
  return ioctl(call->notifier->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

static void put_place(struct frame *frame, enum field_tag tag, const struct place *place) {
  if (!place->known || !frame_bytes(frame, tag, place->path, place->length)) frame_flag(frame, FLAG_UNKNOWN);
}

/* The path at argument `path` seen from argument `dir` (both as in a rule). */
static void place_at(const struct call *call, int dir, int path, bool follows, bool may_be_empty, struct place *place) {
  int directory = dir == CWD ? AT_FDCWD : (int)argument(call, dir);
  char text[MAX_TEXT];
  place->known = place->exists = place->moot = false;
  if (path == NONE || (may_be_empty && argument(call, path) == 0)) {
    find_descriptor(tid_of(call), directory, place);
    return;
  }
  ssize_t length = read_text(tid_of(call), argument(call, path), text, sizeof text);
  if (length == 0 && may_be_empty && directory != AT_FDCWD) find_descriptor(tid_of(call), directory, place);
  else if (length > 0) find_place(tid_of(call), directory, text, follows, place);
  else place->moot = length == 0;
}

/* A socket's address holds its path. */
static bool socket_place(const struct call *call, struct place *place) {
  struct sockaddr_un address;
  size_t length = (size_t)argument(call, 2);
  if (length > sizeof address) return false;
  memset(&address, 0, sizeof address);
  if (read_memory(tid_of(call), argument(call, 1), &address, length) < length) return false;
  if (address.sun_family != AF_UNIX || address.sun_path[0] == 0) return false;
  char text[sizeof address.sun_path + 1];
  memcpy(text, address.sun_path, sizeof address.sun_path);
  text[sizeof address.sun_path] = 0;
  find_place(tid_of(call), AT_FDCWD, text, false, place);
  return true;
}

/* What a file is opened for. openat2 says it in memory; what cannot be read counts as a truncation. */
static int open_flags(const struct call *call) {
  struct open_how how;
  switch (call->notification->data.nr) {
    case __NR_openat2:
      return read_memory(tid_of(call), argument(call, 2), &how, sizeof how) < sizeof how ? O_WRONLY | O_TRUNC : (int)how.flags;
    case __NR_openat: return (int)argument(call, 2);
#ifdef __NR_open
    case __NR_open: return (int)argument(call, 1);
#endif
    default: return O_WRONLY | O_TRUNC;
  }
}

static bool opens_for_reading(int flags) { return (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) == 0; }

/* It fails where something is already. */
static bool replaces_nothing(const struct call *call) {
  return call->notification->data.nr == __NR_renameat2 && (argument(call, 4) & RENAME_NOREPLACE) != 0;
}

/* Keeps what the call destroys, if that is in no snapshot yet. */
static void keep_lost(struct call *call, enum path_op op, const struct place *place, const struct place *to) {
  struct loss loss = {.place = place, .op = op, .exec = call->process->exec, .pid = call->process->pid};
  if (op == OP_RENAME && !replaces_nothing(call)) loss.place = to;
  else if (op == OP_TRUNCATE && (off_t)argument(call, 1) >= place->stat.st_size) return; /* it grows */
  else if (op == OP_TRUNCATE || (op == OP_WRITE && (open_flags(call) & O_TRUNC) != 0)) loss.empties = true;
  else if (op != OP_DELETE) return;
  if (keep(&loss, call->frame)) stream_put(call->notifier->stream, call->frame);
}

/* Whether a change may be one of a file that the capture of the state before has not read yet. Other names may lie anywhere. */
static bool may_concern(const struct place *place) {
  bool is_shared = place->exists && !S_ISDIR(place->stat.st_mode) && place->stat.st_nlink > 1;
  return !place->known || is_shared || keep_concerns(place);
}

static void hold_change(struct call *call, const struct place *place, const struct place *to) {
  if (!holds_want_changes() || !(may_concern(place) || (to != NULL && may_concern(to)))) return;
  uint32_t number = holds_add_change(call->notification->id);
  if (number == 0) return;
  call->held = true;
  frame_number(call->frame, FIELD_NUMBER, number);
}

/* What a path operation is, beyond what its system call says. */
static enum path_op op_of(const struct call *call, const struct rule *rule) {
  if (rule->number == __NR_renameat2 && (argument(call, 4) & RENAME_EXCHANGE) != 0) return OP_EXCHANGE;
  return rule->op;
}

static void tell_path(struct call *call, const struct rule *rule) {
  static struct place place, to; /* one thread */
  bool follows = rule->follows != 0, has_empty = rule->flags != NONE || rule->path == NONE;
  if (rule->flags != NONE) {
    int flags = (int)argument(call, rule->flags);
    if (flags & AT_SYMLINK_NOFOLLOW) follows = false;
  }
  int opened = rule->op == OP_WRITE ? open_flags(call) : 0;
  /* What is created exclusively is never a link. */
  if ((opened & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL)) follows = false;
  if (rule->number == __NR_bind) {
    if (!socket_place(call, &place)) return;
  } else if (rule->op == OP_WRITE && opens_for_reading(opened)) return;
  else place_at(call, rule->dir, rule->path, follows, has_empty, &place);
  if (!place.known && place.moot) return;
  struct frame *frame = call->frame;
  frame_begin(frame, FRAME_PATH, (uint16_t)op_of(call, rule), (uint32_t)call->process->pid);
  frame_number(frame, FIELD_EXEC, call->process->exec);
  if (tid_of(call) != call->process->pid) frame_number(frame, FIELD_THREAD, (uint32_t)tid_of(call));
  put_place(frame, FIELD_PATH, &place);
  const struct place *before = &place;
  if (rule->to_path != NONE) {
    place_at(call, rule->to_dir, rule->to_path, false, false, &to);
    put_place(frame, FIELD_TO, &to);
    if (rule->op == OP_RENAME || rule->op == OP_LINK) before = &to;
  }
  call->refused = protect_refuses(call->process, rule->op, &place, rule->to_path == NONE ? NULL : &to);
  if (call->refused) return;
  /* Pipes, terminals and devices hold nothing that could be kept. */
  bool is_kept = !place.exists || S_ISREG(place.stat.st_mode) || S_ISDIR(place.stat.st_mode) || rule->op != OP_WRITE;
  if (!is_kept || !still_waits(call)) return;
  if (before->exists) frame_flag(frame, FLAG_EXISTS);
  if (call->process->other_mounts) frame_flag(frame, FLAG_UNKNOWN);
  if (place.known && !place.exists) frame_flag(frame, FLAG_ABSENT);
  if (place.exists && S_ISDIR(place.stat.st_mode)) frame_flag(frame, FLAG_DIRECTORY);
  if (place.exists && !S_ISDIR(place.stat.st_mode) && place.stat.st_nlink > 1) frame_flag(frame, FLAG_LINKED);
  hold_change(call, &place, rule->to_path == NONE ? NULL : &to);
  stream_put(call->notifier->stream, frame);
  if (call->held) stream_flush(call->notifier->stream);
  keep_lost(call, op_of(call, rule), &place, &to);
}

/* Adds argv as one field, each argument with a NUL behind it. */
static struct arguments put_argv(struct call *call, uint64_t address, size_t word) {
  static char bytes[MAX_ARGV_BYTES];
  struct arguments told = {.bytes = bytes};
  for (size_t i = 0; i < MAX_ARGUMENTS && told.length < sizeof bytes; i++) {
    uint64_t pointer = 0;
    if (read_memory(tid_of(call), address + i * word, &pointer, word) < word) break;
    if (pointer == 0) {
      told.complete = true;
      break;
    }
    ssize_t got = read_text(tid_of(call), pointer, bytes + told.length, sizeof bytes - told.length);
    if (got < 0) {
      /* As much of it as there is room for. */
      told.length += read_memory(tid_of(call), pointer, bytes + told.length, sizeof bytes - 1 - told.length);
      bytes[told.length++] = 0;
      break;
    }
    told.length += (size_t)got + 1;
  }
  frame_bytes(call->frame, FIELD_ARGV, bytes, told.length);
  return told;
}

/* The variables that say where git's directories are: no option of its need name them. */
static void put_git_env(struct call *call, uint64_t address, size_t word) {
  static const char *const names[] = {"GIT_DIR=", "GIT_WORK_TREE="};
  static char bytes[2 * PATH_ROOM];
  char start[16];
  size_t length = 0;
  for (size_t i = 0; i < MAX_ARGUMENTS; i++) {
    uint64_t pointer = 0;
    if (read_memory(tid_of(call), address + i * word, &pointer, word) < word || pointer == 0) break;
    if (read_memory(tid_of(call), pointer, start, sizeof start) < sizeof start || memcmp(start, "GIT_", 4) != 0) continue;
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
      if (memcmp(start, names[n], strlen(names[n])) != 0) continue;
      ssize_t got = read_text(tid_of(call), pointer, bytes + length, sizeof bytes - length);
      if (got > 0) length += (size_t)got + 1;
    }
  }
  if (length > 0) frame_bytes(call->frame, FIELD_ENV, bytes, length);
}

static bool is_git(const char *path) {
  const char *slash = strrchr(path, '/');
  return strcmp(slash == NULL ? path : slash + 1, "git") == 0;
}

/* `vectors`: the addresses of argv and of the environment. `text`: the path as it was given, or NULL. */
static void tell_exec(struct call *call, struct place *place, const char *text, const uint64_t *vectors, size_t word) {
  struct stat loaded;
  if (text != NULL && program_recall(tid_of(call), text, place)) loaded = place->stat;
  else {
    if (text != NULL) find_place(tid_of(call), AT_FDCWD, text, true, place);
    if (!program_loads(tid_of(call), place, &loaded)) return;
    bool is_script = loaded.st_ino != place->stat.st_ino || loaded.st_dev != place->stat.st_dev;
    if (text != NULL && !is_script) program_remember(text, place);
  }
  if (!still_waits(call)) return;
  struct frame *frame = call->frame;
  uint32_t exec = frame_execution(frame, call->process, tid_of(call), &loaded, place->path, place->length);
  if (call->process->detached) frame_flag(frame, FLAG_DETACHED);
  struct arguments arguments = put_argv(call, vectors[0], word);
  if (!arguments.complete) frame_flag(frame, FLAG_TRUNCATED);
  if (call->notifier->privileges_off && (place->stat.st_mode & (S_ISUID | S_ISGID)) != 0) frame_flag(frame, FLAG_SETUID);
  call->held = exec == 1 && call->notifier->inherits && holds_add_first(call->notification->id, exec);
  if (!call->held) call->held = holds_want(place->path, &arguments) && holds_add(call->notification->id, exec);
  if (call->held) frame_flag(frame, FLAG_HELD);
  if (call->held && (is_git(place->path) || (arguments.length > 0 && is_git(arguments.bytes)))) put_git_env(call, vectors[1], word);
  stream_put(call->notifier->stream, frame);
  /* Somebody waits for it. */
  if (call->held) stream_flush(call->notifier->stream);
}

/* Calls of another architecture: programs are told; of files only that something may have changed. */
static void tell_foreign(struct call *call) {
  static struct place place;
  const struct seccomp_data *data = &call->notification->data;
  if (data->arch == AUDIT_ARCH_I386 && data->nr == 11) {
    char text[MAX_TEXT];
    ssize_t length = read_text(tid_of(call), data->args[0], text, sizeof text);
    if (length > 0) tell_exec(call, &place, text, (uint64_t[]){data->args[1], data->args[2]}, sizeof(uint32_t));
    return;
  }
  if (holds_want_changes()) call->held = holds_add_change(call->notification->id) != 0;
  frame_begin(call->frame, FRAME_LOST, 0, (uint32_t)call->process->pid);
  frame_flag(call->frame, LOST_ARCHITECTURE);
  frame_number(call->frame, FIELD_NUMBER, 1);
  stream_put(call->notifier->stream, call->frame);
}

static bool is_foreign(const struct seccomp_data *data) {
#ifdef __x86_64__
  return data->arch != AUDIT_ARCH_X86_64 || data->nr >= 0x40000000;
#else
  return data->arch != AUDIT_ARCH_AARCH64;
#endif
}

static void tell(struct call *call) {
  uint32_t undone;
  if (!process_verify(call->process, &undone)) {
    frame_begin(call->frame, FRAME_UNDONE, 0, (uint32_t)call->process->pid);
    frame_number(call->frame, FIELD_EXEC, undone);
    stream_put(call->notifier->stream, call->frame);
  }
  if (is_foreign(&call->notification->data)) {
    tell_foreign(call);
    return;
  }
  const struct rule *rule = rule_for(call->notification->data.nr);
  if (rule == NULL) return;
  if (rule->op != OP_EXEC) {
    tell_path(call, rule);
    return;
  }
  static struct place place;
  char text[MAX_TEXT];
  bool is_plain = rule->dir == CWD && read_text(tid_of(call), argument(call, rule->path), text, sizeof text) > 0;
  if (!is_plain) place_at(call, rule->dir, rule->path, true, rule->flags != NONE, &place);
  int first = rule->number == __NR_execve ? 1 : 2;
  tell_exec(call, &place, is_plain ? text : NULL, (uint64_t[]){argument(call, first), argument(call, first + 1)}, sizeof(uint64_t));
}

/* One notification; false when there will be no more. */
static bool receive(int listener, struct seccomp_notif *notification, size_t room) {
  for (;;) {
    memset(notification, 0, room);
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, notification) == 0) return true;
    if (errno == EINTR) continue;
    /* ENOENT: the thread was killed before we came, or there is none any more. */
    struct pollfd state = {.fd = listener, .events = POLLIN};
    if (errno != ENOENT || (poll(&state, 1, 0) > 0 && (state.revents & POLLHUP) != 0)) return false;
  }
}

/* `error`: 0 to let it go on. */
static void answer(int listener, uint64_t notification, int error) {
  /* Larger than any kernel's structure so far; the rest must be zero. */
  union {
    struct seccomp_notif_resp response;
    uint8_t room[512];
  } answer = {.room = {0}};
  answer.response.id = notification;
  answer.response.error = -error;
  answer.response.flags = error == 0 ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0;
  ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

void notify_continue(int listener, uint64_t notification) { answer(listener, notification, 0); }

/* What is being looked at. Shared with the guard: the kernel writes it, so whoever survives knows what to answer. */
static struct seccomp_notif *current;
static size_t current_room;

bool notify_share(void) {
  /* The kernel's structure may be larger than the one we were compiled with. */
  struct seccomp_notif_sizes sizes;
  if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) != 0) return false;
  current_room = sizes.seccomp_notif > sizeof *current ? sizes.seccomp_notif : sizeof *current;
  void *memory = mmap(NULL, current_room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  current = memory;
  return true;
}

void *notify_loop(void *argument_) {
  struct notifier *notifier = argument_;
  static struct frame frame;
  ioctl(notifier->listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
  while (receive(notifier->listener, current, current_room)) {
    struct call call = {.notifier = notifier, .notification = current, .frame = &frame};
    if (!stream_is_broken(notifier->stream)) {
      forget_memory();
      processes_lock();
      call.process = process_of(tid_of(&call));
      tell(&call);
      processes_unlock();
    }
    if (!call.held) answer(notifier->listener, current->id, call.refused ? EACCES : 0);
  }
  return NULL;
}

void notify_pass(int listener) {
  /* Answering twice does no harm. */
  notify_continue(listener, current->id);
  while (receive(listener, current, current_room)) notify_continue(listener, current->id);
}

void notify_inherited(struct notifier *notifier, pid_t pid) {
  static struct frame frame;
  static struct place place;
  char directory[64];
  snprintf(directory, sizeof directory, "/proc/%d/fdinfo", pid);
  DIR *list = opendir(directory);
  if (list == NULL) return;
  for (struct dirent *entry; (entry = readdir(list)) != NULL;) {
    char text[512];
    if (entry->d_name[0] == '.') continue;
    int fd = openat(dirfd(list), entry->d_name, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    if (length <= 0) continue;
    text[length] = 0;
    const char *flags = strstr(text, "flags:");
    if (flags == NULL || (strtol(flags + 6, NULL, 8) & O_ACCMODE) == O_RDONLY) continue;
    find_descriptor(pid, atoi(entry->d_name), &place);
    if (!place.known || !S_ISREG(place.stat.st_mode)) continue;
    frame_begin(&frame, FRAME_PATH, OP_INHERITED, (uint32_t)pid);
    frame_flag(&frame, FLAG_EXISTS);
    frame_number(&frame, FIELD_EXEC, 0);
    put_place(&frame, FIELD_PATH, &place);
    stream_put(notifier->stream, &frame);
    if (may_concern(&place)) notifier->inherits = true;
  }
  closedir(list);
}
