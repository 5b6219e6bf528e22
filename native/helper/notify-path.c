/* Changes of files as frames. See call.h. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "alone.h"
#include "before.h"
#include "call.h"
#include "emptied.h"
#include "holds.h"
#include "keep.h"
#include "losses.h"
#include "mounts.h"
#include "moves.h"
#include "names.h"
#include "plain.h"
#include "protect.h"
#include "record.h"
#include "spool.h"

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

static void put_place(struct frame *frame, enum field_tag tag, const struct place *place) {
  if (!place->known || !frame_bytes(frame, tag, place->path, place->length)) frame_flag(frame, FLAG_UNKNOWN);
}

/*
 * When the content changed that the call is about to change: if that is later than what the run last did to the file, it was
 * perhaps somebody else. Of the two times the earlier one, since the other moves when only the mode or the name changes; but the one can
 * be set to anything, and says nothing where it is older than the command. A file with several names may have been changed by another of
 * them, and the one that is left has another time when the run removes the rest: then it counts from when the run last named any.
 */
static void put_changed(const struct call *call, enum field_tag tag, const struct place *place) {
  bool is_kept = place->known && place->exists && (S_ISREG(place->stat.st_mode) || S_ISLNK(place->stat.st_mode));
  if (!is_kept) return;
  uint64_t status = in_ns(place->stat.st_ctim), content = in_ns(place->stat.st_mtim), begun = call->notifier->begun_ns;
  uint64_t changed = content > begun && content < status ? content : status;
  uint64_t named = names_once_at(place);
  if (place->stat.st_nlink > 1 || named != 0) changed = named == 0 || content > named + WRITE_NS ? content : 0;
  if (changed > begun) frame_long(call->frame, tag, changed);
}

/* A socket's address holds its path. */
bool socket_place(const struct call *call, struct place *place) {
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
int open_flags(const struct call *call) {
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

bool opens_in_root(const struct call *call) {
  struct open_how how;
  if (call->notification->data.nr != __NR_openat2) return false;
  return read_memory(tid_of(call), argument(call, 2), &how, sizeof how) == sizeof how && (how.resolve & RESOLVE_IN_ROOT) != 0;
}

static bool opens_for_reading(int flags) { return (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) == 0; }

/* Whether a change may be one of a file that the capture of the state before has not read yet. Other names may lie anywhere. */
static bool may_concern(const struct place *place) {
  bool is_shared = place->exists && !S_ISDIR(place->stat.st_mode) && place->stat.st_nlink > 1;
  return !place->known || is_shared || spool_concerns(place);
}

static void hold_change(struct call *call, const struct place *place, const struct place *to) {
  if (!holds_want_changes() || !(may_concern(place) || (to != NULL && may_concern(to)))) return;
  uint32_t number = holds_add_change(call->notification->id, tid_of(call));
  if (number == 0) return;
  call->held = true;
  frame_number(call->frame, FIELD_NUMBER, number);
}

/* What a path operation is, beyond what its system call says. */
static enum path_op op_of(const struct call *call, const struct rule *rule) {
  if (rule->number == __NR_renameat2 && (argument(call, 4) & RENAME_EXCHANGE) != 0) return OP_EXCHANGE;
  return rule->op;
}

/* Whether its paths are to be translated. */
bool sees_otherwise(const struct call *call) {
  struct process *process = call->process;
  /* A child may begin in a mount namespace of its own; one that executes is looked at then. */
  if (!process->mounts_known) process->other_mounts = process->other_mounts || mounts_differ(process->pid);
  process->mounts_known = true;
  return process->other_mounts || mounts_have_changed();
}

void note_mounts(const struct call *call, const struct rule *rule) {
  /* 0: of any kind. */
  if (rule->number == __NR_setns && (argument(call, 1) == 0 || (argument(call, 1) & CLONE_NEWNS) != 0)) plain_stop();
  if (rule->number == __NR_mount || rule->number == __NR_move_mount) mounts_expect();
  else if (rule->number != __NR_unshare || (argument(call, 0) & CLONE_NEWNS) != 0) call->process->other_mounts = true;
}

void tell_path(struct call *call, const struct rule *rule) {
  static struct place place, to; /* under the lock of processes.h, as all that is static here */
  bool follows = rule->follows != 0, has_empty = rule->flags != NONE || rule->path == NONE;
  if (rule->flags != NONE) {
    int flags = (int)argument(call, rule->flags);
    if (flags & AT_SYMLINK_NOFOLLOW) follows = false;
  }
  int opened = rule->op == OP_WRITE ? open_flags(call) : 0;
  /* What is created exclusively is never a link. */
  bool is_alone = (opened & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
  if (is_alone) follows = false;
  if (rule->number == __NR_bind) {
    if (!socket_place(call, &place)) return;
  } else if (rule->op == OP_WRITE && opens_for_reading(opened)) return;
  else place_at(call, rule->dir, rule->path, follows, has_empty, &place);
  bool is_translated = sees_otherwise(call);
  if (is_translated) mounts_translate(tid_of(call), &place);
  if (!place.known && place.moot) return;
  struct frame *frame = call->frame;
  frame_begin(frame, FRAME_PATH, (uint16_t)op_of(call, rule), (uint32_t)call->process->pid);
  frame_number(frame, FIELD_EXEC, process_present(call->process));
  if (tid_of(call) != call->process->pid) frame_number(frame, FIELD_THREAD, (uint32_t)tid_of(call));
  put_place(frame, FIELD_PATH, &place);
  const struct place *before = &place;
  if (rule->to_path != NONE) {
    place_at(call, rule->to_dir, rule->to_path, false, false, &to);
    if (is_translated) mounts_translate(tid_of(call), &to);
    if (!to.known && to.moot) return;
    put_place(frame, FIELD_TO, &to);
    if (rule->op == OP_RENAME || rule->op == OP_LINK) before = &to;
  }
  if (spool_discount(&place) && (rule->op == OP_WRITE || rule->op == OP_TRUNCATE)) spool_detach(&place);
  if (rule->to_path != NONE) spool_discount(&to);
  /* Those were looked at before. */
  if (!call->is_of_subvolume)
    call->refused = protect_refuses(call->process, rule->op, &place, rule->to_path == NONE ? NULL : &to);
  /* After the end nobody wants to know what changes. */
  if (call->refused || stream_is_left(call->notifier->stream)) return;
  /* Pipes, terminals and devices hold nothing that could be kept. */
  bool is_kept = !place.exists || S_ISREG(place.stat.st_mode) || S_ISDIR(place.stat.st_mode) || rule->op != OP_WRITE;
  if (!is_kept || !still_waits(call)) return;
  if (before->exists) frame_flag(frame, FLAG_EXISTS);
  if (place.known && !place.exists) frame_flag(frame, FLAG_ABSENT);
  if (place.exists && S_ISDIR(place.stat.st_mode)) frame_flag(frame, FLAG_DIRECTORY);
  if (place.exists && !S_ISDIR(place.stat.st_mode) && place.stat.st_nlink > 1) frame_flag(frame, FLAG_LINKED);
  if (is_alone && !place.exists && spool_inside(&place) != NULL) alone_note(&place, call->process->pid);
  if (rule->op != OP_DELETE || !alone_made(&place, call->process->pid)) put_changed(call, FIELD_CHANGED, &place);
  if (rule->to_path != NONE) put_changed(call, FIELD_REPLACED, &to);
  losses_keep(call, op_of(call, rule), &place, &to);
  emptied_note(call, op_of(call, rule), &place, rule->to_path == NONE ? NULL : &to);
  if (op_of(call, rule) == OP_RENAME && emptied_is(&place)) frame_flag(frame, FLAG_EMPTIED);
  keep_told(&place);
  if (rule->to_path != NONE) keep_told(&to);
  names_note(&place, rule->op == OP_LINK);
  if (rule->to_path != NONE) names_note(&to, false);
  if (rule->op == OP_RENAME) moves_add(call, op_of(call, rule), &place, &to);
  hold_change(call, &place, rule->to_path == NONE ? NULL : &to);
  stream_put(call->notifier->stream, frame);
  if (call->held) stream_flush(call->notifier->stream);
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
    if (record_is_on()) {
      record_inherited(&place);
      continue;
    }
    frame_begin(&frame, FRAME_PATH, OP_INHERITED, (uint32_t)pid);
    frame_flag(&frame, FLAG_EXISTS);
    frame_number(&frame, FIELD_EXEC, 0);
    put_place(&frame, FIELD_PATH, &place);
    stream_put(notifier->stream, &frame);
    before_change(OP_INHERITED, &place, NULL);
    if (may_concern(&place)) notifier->inherits = true;
  }
  closedir(list);
}
