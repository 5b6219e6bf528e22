/* Executions as frames, before they happen. See call.h. */
#define _GNU_SOURCE
#include <fcntl.h>

#include "call.h"
#include "executions.h"
#include "git-env.h"
#include "holds.h"
#include "unread.h"

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

/* What is to be executed, into `place`; false: it will not be, or it is told later by what the process has become. */
static bool find_program(struct call *call, const struct named *named, struct place *place, struct stat *loaded) {
  place->known = place->exists = false;
  if (named->path != NULL && program_recall(tid_of(call), named->path, place)) {
    *loaded = place->stat;
    return true;
  }
  enum loading loading = LOADS_NOT;
  if (named->path != NULL) {
    if (*named->path == 0) find_descriptor(tid_of(call), named->dir, place);
    else locate(call, named->dir, named->path, true, place);
    loading = program_loads(tid_of(call), named, place, loaded);
  }
  if (loading == LOADS_UNSURE || (loading == LOADS_NOT && !place->known && memory_is_shut(tid_of(call)))) unread_note(call);
  if (loading != LOADS) return false;
  bool is_itself = loaded->st_ino == place->stat.st_ino && loaded->st_dev == place->stat.st_dev;
  if (is_itself && place->known) program_remember(named->path, place);
  return true;
}

void tell_exec(struct call *call, const struct named *named, const uint64_t *vectors, size_t word) {
  static struct place place;
  struct stat loaded;
  if (!find_program(call, named, &place, &loaded)) return;
  if (!still_waits(call)) return;
  struct frame *frame = call->frame;
  uint32_t exec = frame_execution(frame, call->process, tid_of(call), &loaded, place.path, place.length);
  if (call->process->detached) frame_flag(frame, FLAG_DETACHED);
  struct arguments arguments = put_argv(call, vectors[0], word);
  if (!arguments.complete) frame_flag(frame, FLAG_TRUNCATED);
  if (call->notifier->privileges_off && (place.stat.st_mode & (S_ISUID | S_ISGID)) != 0) frame_flag(frame, FLAG_SETUID);
  call->held = exec == 1 && call->notifier->inherits && holds_add_first(call->notification->id, tid_of(call), exec);
  if (!call->held) call->held = holds_want(place.path, &arguments) && holds_add(call->notification->id, tid_of(call), exec);
  if (call->held) frame_flag(frame, FLAG_HELD);
  if (call->held && (names_git(place.path) || (arguments.length > 0 && names_git(arguments.bytes))))
    put_git_env(frame, tid_of(call), vectors[1], word);
  stream_put(call->notifier->stream, frame);
  /* Somebody waits for it. */
  if (call->held) stream_flush(call->notifier->stream);
}
