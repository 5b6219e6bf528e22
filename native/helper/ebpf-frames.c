/* See ebpf-frames.h. */
#define _GNU_SOURCE
#include "ebpf-frames.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum { MAX_NAMES = 512, MAX_INTERPRETER_WORDS = 8 };
static const char deleted[] = " (deleted)";

/* What the names in `text`, from the last to the first, mean as a path. Returns its length; `out` has room for all of it. */
static size_t join(const char *text, size_t length, bool is_cut, char *out) {
  const char *names[MAX_NAMES];
  int count = 0;
  for (size_t at = 0; at < length && count < MAX_NAMES;) {
    names[count++] = text + at;
    at += strnlen(text + at, length - at) + 1;
  }
  size_t done = 0;
  if (is_cut) done = (size_t)sprintf(out, "/...");
  if (count == 0 && !is_cut) out[done++] = '/';
  while (count-- > 0) {
    size_t size = strnlen(names[count], (size_t)(text + length - names[count]));
    out[done++] = '/';
    memcpy(out + done, names[count], size);
    done += size;
  }
  return done;
}

/* Goes from the directory in out[0…at] along `name`, which may be relative. Returns the new length. */
static size_t go(char *out, size_t at, const char *name) {
  if (*name == '/') at = 0;
  if (at == 1) at = 0;
  while (*name != 0) {
    size_t size = strcspn(name, "/");
    if (size == 2 && memcmp(name, "..", 2) == 0) {
      while (at > 0 && out[--at] != '/');
    } else if (size > 0 && !(size == 1 && *name == '.')) {
      out[at++] = '/';
      memcpy(out + at, name, size);
      at += size;
    }
    name += size;
    while (*name == '/') name++;
  }
  if (at == 0) out[at++] = '/';
  return at;
}

/* The arguments of a script as they were given: without the interpreter and its words, which the kernel put before them. */
static size_t skip_interpreter(const char *argv, size_t length, const char *name) {
  size_t at = 0;
  for (int i = 0; i < MAX_INTERPRETER_WORDS && at < length; i++) {
    if (strncmp(argv + at, name, length - at) == 0) return at;
    at += strnlen(argv + at, length - at) + 1;
  }
  return 0;
}

static void put_argv(struct frame *frame, const struct ebpf_event *event, const char *argv, const char *name) {
  /* A last one that was cut gets its end here. */
  static char bytes[EBPF_ARGV_ROOM + 1];
  size_t from = *name == 0 ? 0 : skip_interpreter(argv, event->argv_length, name);
  size_t length = event->argv_length - from;
  memcpy(bytes, argv + from, length);
  if (length > 0 && bytes[length - 1] != 0) bytes[length++] = 0;
  frame_bytes(frame, FIELD_ARGV, bytes, length);
}

static void tell_exec(struct stream *stream, struct frame *frame, const struct ebpf_event *event) {
  static char cwd[2 * EBPF_TEXT_ROOM], program[2 * EBPF_TEXT_ROOM];
  const char *cwd_text = (const char *)(event + 1), *program_text = cwd_text + event->cwd_length;
  const char *name_text = program_text + event->program_length, *argv = name_text + event->name_length;
  const char *name = event->name_length > 0 ? name_text : "";
  size_t cwd_length = join(cwd_text, event->cwd_length, event->flags & EBPF_CWD_CUT, cwd), program_length;
  if (*name != 0) {
    memcpy(program, cwd, cwd_length);
    program_length = go(program, cwd_length, name);
  } else program_length = join(program_text, event->program_length, event->flags & EBPF_PROGRAM_CUT, program);
  if (event->flags & EBPF_CWD_DELETED) {
    memcpy(cwd + cwd_length, deleted, sizeof deleted - 1);
    cwd_length += sizeof deleted - 1;
  }
  frame_begin(frame, FRAME_EXEC, 0, event->pid);
  frame_time(frame, event->time_ns);
  frame_number(frame, FIELD_EXEC, event->exec);
  frame_number(frame, FIELD_PARENT, event->parent);
  frame_number(frame, FIELD_PPID, event->ppid);
  frame_number(frame, FIELD_DEPTH, event->depth);
  if (event->replaces != 0) frame_number(frame, FIELD_REPLACES, event->replaces);
  frame_bytes(frame, FIELD_PROGRAM, program, program_length);
  frame_bytes(frame, FIELD_CWD, cwd, cwd_length);
  put_argv(frame, event, argv, name);
  if (event->flags & EBPF_TRUNCATED) frame_flag(frame, FLAG_TRUNCATED);
  stream_put(stream, frame);
}

static void tell_exit(struct stream *stream, struct frame *frame, const struct ebpf_event *event) {
  int status = (int)event->status;
  frame_begin(frame, FRAME_EXIT, 0, event->pid);
  frame_time(frame, event->time_ns);
  frame_number(frame, FIELD_EXEC, event->exec);
  if (WIFSIGNALED(status)) frame_number(frame, FIELD_SIGNAL, (uint32_t)WTERMSIG(status));
  else frame_number(frame, FIELD_CODE, (uint32_t)WEXITSTATUS(status));
  stream_put(stream, frame);
}

void ebpf_tell(struct stream *stream, struct frame *frame, const struct ebpf_event *event, size_t length) {
  if (length < sizeof *event) return;
  uint64_t text = (uint64_t)event->cwd_length + event->program_length + event->name_length + event->argv_length;
  if (text > length - sizeof *event || event->argv_length > EBPF_ARGV_ROOM) return;
  if (event->kind == EBPF_EXEC) tell_exec(stream, frame, event);
  else if (event->kind == EBPF_EXIT) tell_exit(stream, frame, event);
}
