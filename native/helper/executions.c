/* Executions as frames. See executions.h. */
#define _GNU_SOURCE
#include "executions.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "git-env.h"
#include "tracee.h"

/* Interpreters that may stand before a script, each with one argument. */
enum { MAX_INTERPRETER_WORDS = 10, MAX_AUXILIARY = 64 };

uint32_t frame_execution(struct frame *frame, struct process *process, pid_t tid, const struct stat *loaded,
                         const char *program, size_t length) {
  static char cwd[PATH_ROOM];
  size_t cwd_length = read_link(tid, "cwd", cwd, sizeof cwd);
  uint32_t replaces;
  uint32_t exec = process_execute(process, tid, loaded, &replaces);
  frame_begin(frame, FRAME_EXEC, 0, (uint32_t)process->pid);
  frame_number(frame, FIELD_EXEC, exec);
  frame_number(frame, FIELD_PARENT, process->parent);
  frame_number(frame, FIELD_PPID, (uint32_t)process->ppid);
  frame_number(frame, FIELD_DEPTH, process->depth);
  if (replaces != 0) frame_number(frame, FIELD_REPLACES, replaces);
  frame_bytes(frame, FIELD_PROGRAM, program, length);
  frame_bytes(frame, FIELD_CWD, cwd, cwd_length);
  return exec;
}

/* The path that was given to the system, which is a script's own; -1 when it cannot be read (32-bit programs). */
static ssize_t read_named(pid_t pid, char *out, size_t room) {
  uint64_t words[MAX_AUXILIARY * 2];
  ssize_t length = read_file(pid, "auxv", words, sizeof words);
  for (ssize_t i = 0; i + 1 < length / (ssize_t)sizeof *words; i += 2) {
    if (words[i] == AT_EXECFN) return read_text(pid, words[i + 1], out, room);
  }
  return -1;
}

/*
 * Where the arguments begin that were given: behind the interpreter, which the system puts before a script. The first of
 * them it replaces by the script's path.
 */
static const char *given_arguments(const char *arguments, size_t length, const char *named) {
  const char *at = arguments, *end = arguments + length;
  for (int i = 0; i < MAX_INTERPRETER_WORDS && at < end; i++, at += strlen(at) + 1) {
    if (i > 0 && strcmp(at, named) == 0) return at;
  }
  return arguments;
}

/* As many arguments as are kept, each with its NUL; false when there are more. */
static bool bound_arguments(const char *arguments, size_t *length) {
  size_t count = 0;
  for (size_t i = 0; i < *length; i++) {
    if (arguments[i] != 0 || ++count < MAX_ARGUMENTS || i + 1 == *length) continue;
    *length = i + 1;
    return false;
  }
  return true;
}

/* A program that its user may not read is not shown to us either, but for its name. */
static void find_executable(pid_t pid, struct place *exe) {
  char link[64];
  snprintf(link, sizeof link, "/proc/%d/exe", pid);
  memset(&exe->stat, 0, sizeof exe->stat);
  exe->length = 0;
  if (stat(link, &exe->stat) == 0 && name_as_shown(link, exe)) return;
  ssize_t got = read_file(pid, "comm", exe->path, sizeof exe->path - 1);
  exe->length = got > 0 ? (size_t)got - 1 : 0;
  exe->path[exe->length] = 0;
}

uint32_t frame_executed(struct frame *frame, struct process *process, bool privileges_off, struct executed *executed) {
  static struct place place, exe;
  static char named[PATH_ROOM], arguments[MAX_ARGV_BYTES + 1];
  pid_t pid = process->pid;
  forget_memory();
  find_executable(pid, &exe);
  place.known = place.exists = false;
  if (read_named(pid, named, sizeof named) > 0) find_place(pid, AT_FDCWD, named, true, &place);
  else named[0] = 0;
  /* By a descriptor that is closed by now, for example. */
  if (!place.known || !place.exists) place = exe;
  bool is_script = place.stat.st_dev != exe.stat.st_dev || place.stat.st_ino != exe.stat.st_ino;
  uint32_t exec = frame_execution(frame, process, pid, &exe.stat, place.path, place.length);
  process->unverified = process->pending = false;

  ssize_t got = read_file(pid, "cmdline", arguments, sizeof arguments);
  size_t length = got < 0 ? 0 : (size_t)got;
  bool complete = length > 0 && length <= MAX_ARGV_BYTES;
  if (length > MAX_ARGV_BYTES) length = MAX_ARGV_BYTES;
  if (length == 0) length = (size_t)snprintf(arguments, sizeof arguments, "%s", place.path) + 1;
  if (length > 0) arguments[length - 1] = 0;
  const char *given = is_script ? given_arguments(arguments, length, named) : arguments;
  length -= (size_t)(given - arguments);
  complete = bound_arguments(given, &length) && complete;
  if (!complete) frame_flag(frame, FLAG_TRUNCATED);
  frame_bytes(frame, FIELD_ARGV, given, length);
  if (privileges_off && (exe.stat.st_mode & (S_ISUID | S_ISGID)) != 0) frame_flag(frame, FLAG_SETUID);
  *executed = (struct executed){place.path, {.bytes = given, .length = length, .complete = complete}};
  return exec;
}

bool tell_executed(struct stream *stream, struct frame *frame, pid_t pid, bool privileges_off) {
  struct executed executed;
  struct process *process = process_of(pid);
  if (process->pid != pid) return false; /* killed meanwhile: nothing was executed that anybody could have seen */
  uint32_t exec = frame_executed(frame, process, privileges_off, &executed);
  bool held = holds_want(executed.program, &executed.arguments) && holds_add((uint64_t)pid, pid, exec);
  if (held) frame_flag(frame, FLAG_HELD);
  if (held && (names_git(executed.program) || names_git(executed.arguments.bytes))) put_own_git_env(frame, pid);
  stream_put(stream, frame);
  /* Somebody waits for it. */
  if (held) stream_flush(stream);
  return held;
}
