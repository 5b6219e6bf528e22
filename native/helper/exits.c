/* By the process descriptor (Linux 6.15), and while nobody has waited for it by /proc. See exits.h. */
#define _GNU_SOURCE
#include "exits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "moves.h"
#include "pidfd.h"
#include "tracee.h"
#include "unread.h"

enum { MAX_ASKS = 100, ASK_AGAIN_US = 50 };
static const uint64_t lasting_ns = 100000000;

/*
 * Of one that was undumpable at its end, what is not for everybody stands in /proc as 0: the code, and the 33rd word behind the name,
 * which says that it waits. As a zombie is about to do, so that is asked for certain.
 */
static bool is_shut(pid_t pid, const char *state) {
  char link[64], text[64];
  for (int i = 0; i < 33 && state != NULL; i++) state = strchr(state + 1, ' ');
  if (state == NULL || strncmp(state, " 0 ", 3) != 0) return false;
  snprintf(link, sizeof link, "/proc/%d/ns/user", pid);
  return readlink(link, text, sizeof text) < 0 && errno == EACCES;
}

/* The last number in /proc/PID/stat of a process that its parent has not waited for. */
static bool ask_zombie(pid_t pid, int *status, bool *is_shut_off) {
  char text[2048];
  if (!read_text_file(pid, "stat", text, sizeof text)) return false;
  const char *state = strrchr(text, ')'), *last = strrchr(text, ' ');
  if (state == NULL || last == NULL || strncmp(state, ") Z", 3) != 0) return false;
  *status = atoi(last + 1);
  *is_shut_off = is_shut(pid, state);
  return true;
}

/* The status as wait(2) has it; false when nobody knows. `is_shut_off`: nor will, before its parent has waited for it. */
static bool find_status(const struct process *process, int *status, bool *is_shut_off) {
  *is_shut_off = false;
  if (pidfd_status(process->pidfd, status)) return true;
  int seen;
  bool has_seen = ask_zombie(process->pid, &seen, is_shut_off);
  if (*is_shut_off) return false;
  /* Waited for in between: then the number may be another's, and the descriptor knows, or will in a moment. */
  for (int i = 0; i < (has_seen ? 1 : MAX_ASKS); i++) {
    if (pidfd_status(process->pidfd, status)) return true;
    if (!has_seen) usleep(ASK_AGAIN_US);
  }
  if (has_seen) *status = seen;
  return has_seen;
}

/* `status`: NULL when nobody knows. */
static void tell(struct stream *stream, struct frame *frame, struct process *process, const int *status) {
  if (unread_any()) unread_end(frame, process, status);
  if (process->executed) {
    frame_begin(frame, FRAME_EXIT, 0, (uint32_t)process->pid);
    frame_number(frame, FIELD_EXEC, process->exec);
    if (status != NULL && WIFSIGNALED(*status)) frame_number(frame, FIELD_SIGNAL, (uint32_t)WTERMSIG(*status));
    else if (status != NULL) frame_number(frame, FIELD_CODE, (uint32_t)WEXITSTATUS(*status));
    stream_put(stream, frame);
    /* The end of what took its time may be worth a snapshot, and the next command comes soon. */
    if (monotonic_ns() - process->executed_ns > lasting_ns) stream_flush(stream);
  }
  moves_settle_process(stream, frame, process->pid);
  process_forget(process);
}

void tell_exit(struct stream *stream, struct frame *frame, struct process *process) {
  int status = 0;
  /* Not under the lock, for which the next execution would wait: nobody else forgets it. */
  bool is_shut_off, is_known = find_status(process, &status, &is_shut_off);
  processes_lock();
  if (is_shut_off) {
    if (unread_any()) unread_end(frame, process, NULL);
    process_await_reaping(process);
    processes_unlock();
    return;
  }
  tell(stream, frame, process, is_known ? &status : NULL);
  processes_unlock();
}

void tell_exit_status(struct stream *stream, struct frame *frame, pid_t pid, int status) {
  processes_lock();
  struct process *process = process_find(pid);
  if (process != NULL) tell(stream, frame, process, &status);
  processes_unlock();
}

bool exits_are_known(void) {
  pid_t pid = fork();
  if (pid == 0) _exit(7);
  if (pid < 0) return false;
  int pidfd = pidfd_of(pid), status = 0;
  waitpid(pid, NULL, 0);
  bool known = pidfd >= 0 && pidfd_status(pidfd, &status) && WEXITSTATUS(status) == 7;
  if (pidfd >= 0) close(pidfd);
  return known;
}
