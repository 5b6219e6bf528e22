/* Takes the notifications one by one. See notify.h. */
#define _GNU_SOURCE
#include "notify.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "call.h"
#include "foreign.h"
#include "holds.h"
#include "in-root.h"
#include "moves.h"
#include "plain.h"
#include "record.h"
#include "subvolumes.h"
#include "unread.h"
#include "wake-up.h"

static bool is_waiting(int listener, uint64_t id) { return ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0; }
bool still_waits(const struct call *call) { return is_waiting(call->notifier->listener, call->notification->id); }

void locate(const struct call *call, int dir, const char *path, bool follows, struct place *place) {
  if (sees_otherwise(call) || !find_plain_place(tid_of(call), dir, path, follows, place))
    find_place(tid_of(call), dir, path, follows, place);
}

void place_at(const struct call *call, int dir, int path, bool follows, bool may_be_empty, struct place *place) {
  int directory = dir == CWD ? AT_FDCWD : (int)argument(call, dir);
  char text[MAX_TEXT];
  place->known = place->exists = place->moot = false;
  if (path == NONE || (may_be_empty && argument(call, path) == 0)) {
    find_descriptor(tid_of(call), directory, place);
    return;
  }
  ssize_t length = read_path(tid_of(call), argument(call, path), text, sizeof text);
  if (length == 0 && may_be_empty && directory != AT_FDCWD) find_descriptor(tid_of(call), directory, place);
  else if (length > 0 && opens_in_root(call)) find_in_root(tid_of(call), directory, text, follows, place);
  else if (length > 0) locate(call, directory, text, follows, place);
  else place->moot = length == 0;
}

/* A call of which cannot be said what it changes: only that something may have. */
static void tell_unclear(struct call *call) {
  if (holds_want_changes()) call->held = holds_add_change(call->notification->id, tid_of(call)) != 0;
  frame_begin(call->frame, FRAME_LOST, 0, (uint32_t)call->process->pid);
  frame_flag(call->frame, LOST_ARCHITECTURE);
  frame_number(call->frame, FIELD_NUMBER, 1);
  stream_put(call->notifier->stream, call->frame);
}

static bool is_foreign(const struct seccomp_data *data) {
#ifdef __x86_64__
  return data->arch != AUDIT_ARCH_X86_64 || data->nr >= X32_BIT;
#else
  return data->arch != AUDIT_ARCH_AARCH64;
#endif
}

/* Takes an execution back that the system has refused. */
static void settle_execution(struct call *call) {
  enum outcome outcome = process_outcome(call->process, tid_of(call));
  if (outcome != OUTCOME_FAILED && !(outcome == OUTCOME_LIKELY_FAILED && still_waits(call))) return;
  uint32_t undone = process_take_back(call->process);
  frame_begin(call->frame, FRAME_UNDONE, 0, (uint32_t)call->process->pid);
  frame_number(call->frame, FIELD_EXEC, undone);
  stream_put(call->notifier->stream, call->frame);
}

static void tell(struct call *call) {
  settle_execution(call);
  moves_settle(call->notifier->stream, call->frame, tid_of(call));
  size_t word = sizeof(uint64_t);
  if (is_foreign(&call->notification->data)) {
    static struct seccomp_notif translated;
    translated = *call->notification;
    if (!foreign_translate(tid_of(call), &translated.data)) {
      tell_unclear(call);
      return;
    }
    call->notification = &translated;
    word = sizeof(uint32_t);
  }
  if (subvolume_concerns(&call->notification->data)) {
    static struct seccomp_notif named;
    named = *call->notification;
    bool is_named = subvolume_translate(tid_of(call), &named.data);
    call->notification = &named;
    call->is_of_subvolume = true;
    call->refused = subvolume_is_refused(call);
    if (!is_named && !call->refused) tell_unclear(call);
    if (!is_named || call->refused) return;
  }
  const struct rule *rule = rule_for(call->notification->data.nr);
  if (rule != NULL && rule->op == OP_BY_HANDLE) tell_unclear(call);
  /* Of x32 all calls come here, also those that only look. */
  if (rule == NULL || rule->op >= OP_STAT) return;
  if (unread_any()) call->held = unread_hold(call, rule->op != OP_EXEC && rule->op != OP_MOUNTS);
  if (rule->op == OP_MOUNTS) {
    note_mounts(call, rule);
    return;
  }
  if (rule->op != OP_EXEC) {
    tell_path(call, rule);
    return;
  }
  char text[MAX_TEXT];
  struct named named = {.dir = rule->dir == CWD ? AT_FDCWD : (int)argument(call, rule->dir), .path = text};
  if (read_text(tid_of(call), argument(call, rule->path), text, sizeof text) < 0) named.path = NULL;
  int first = rule->number == __NR_execve ? 1 : 2;
  tell_exec(call, &named, (uint64_t[]){argument(call, first), argument(call, first + 1)}, word);
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

/* What the thread is looking at. Shared with the guard: the kernel writes it, so whoever survives knows what to answer. */
static struct seccomp_notif *looked_at;
static size_t room_for_one;

bool notify_share(void) {
  /* The kernel's structure may be larger than the one we were compiled with. */
  struct seccomp_notif_sizes sizes;
  if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) != 0) return false;
  room_for_one = sizes.seccomp_notif > sizeof(struct seccomp_notif) ? sizes.seccomp_notif : sizeof(struct seccomp_notif);
  void *memory = mmap(NULL, room_for_one, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  looked_at = memory;
  return true;
}

static void look(struct call *call) {
  const struct notifier *notifier = call->notifier;
  if (!stream_is_broken(notifier->stream)) {
    forget_memory();
    bool is_root = plain_watch(&call->notification->data);
    if (unread_any()) unread_settle(call->frame, tid_of(call));
    call->process = process_of(tid_of(call));
    if (record_is_on()) record_call(call, is_foreign(&call->notification->data));
    else if (!is_root) tell(call);
    call->unread = unread_any();
  }
  /* Without a reader nobody knows what is safe, and the command is about to be killed; unless all was safe before it went. */
  if (!call->held && stream_is_broken(notifier->stream) && holds_want_changes())
    call->held = holds_add_change(call->notification->id, tid_of(call)) != 0;
}

static bool receive_next(const struct notifier *notifier) {
  wake_up_before_receiving();
  if (!receive(notifier->listener, looked_at, room_for_one)) return false;
  wake_up_received((pid_t)looked_at->pid);
  return true;
}

static void *notify_loop(void *argument_) {
  static struct frame frame;
  struct notifier *notifier = argument_;
  while (receive_next(notifier)) {
    struct call call = {.notifier = notifier, .notification = looked_at, .frame = &frame};
    processes_lock();
    look(&call);
    processes_unlock();
    if (call.held && !call.refused) continue;
    wake_up_before_answering();
    answer(notifier->listener, looked_at->id, call.refused ? EACCES : 0);
    if (call.unread) unread_watch(&call);
  }
  return NULL;
}

int notify_start(struct notifier *notifier) {
  wake_up_begin(notifier->listener);
  pthread_t thread;
  int error = pthread_create(&thread, NULL, notify_loop, notifier);
  if (error != 0) return error;
  pthread_detach(thread);
  return 0;
}

void notify_pass(int listener) {
  /* Answering twice does no harm. */
  notify_continue(listener, looked_at->id);
  while (receive(listener, looked_at, room_for_one)) notify_continue(listener, looked_at->id);
}

static int ending; /* the listener, while callers are ended */

/* While it waits for an answer, the number cannot have come to mean another process. What we may not kill is refused. */
static void end_caller(uint64_t notification, pid_t pid) {
  if (!is_waiting(ending, notification)) return;
  if (pid <= 0 || kill(pid, SIGKILL) != 0) answer(ending, notification, EACCES);
}

void notify_end(int listener) {
  ending = listener;
  holds_each(end_caller);
  end_caller(looked_at->id, (pid_t)looked_at->pid);
  while (receive(listener, looked_at, room_for_one)) end_caller(looked_at->id, (pid_t)looked_at->pid);
}
