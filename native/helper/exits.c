/* By the process descriptor (Linux 6.15), and while nobody has waited for it by /proc. See exits.h. */
#define _GNU_SOURCE
#include "exits.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tracee.h"

/* Newer than the headers of most systems. */
struct exit_info {
  uint64_t mask, cgroup;
  uint32_t pid, tgid, ppid, ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid;
  int32_t exit_code;
};
_Static_assert(sizeof(struct exit_info) == 64, "the first version of struct pidfd_info");
enum { INFO_EXIT = 1 << 3, MAX_ASKS = 100, ASK_AGAIN_US = 50 };
#define GET_INFO _IOWR(0xFF, 11, struct exit_info)

static bool ask_descriptor(int pidfd, int *status) {
  struct exit_info info = {.mask = INFO_EXIT};
  if (ioctl(pidfd, GET_INFO, &info) != 0 || (info.mask & INFO_EXIT) == 0) return false;
  *status = info.exit_code;
  return true;
}

/* The last number in /proc/PID/stat of a process that its parent has not waited for. */
static bool ask_zombie(pid_t pid, int *status) {
  char text[2048];
  if (!read_text_file(pid, "stat", text, sizeof text)) return false;
  const char *state = strrchr(text, ')'), *last = strrchr(text, ' ');
  if (state == NULL || last == NULL || strncmp(state, ") Z", 3) != 0) return false;
  *status = atoi(last + 1);
  return true;
}

/* The status as wait(2) has it; false when nobody knows. */
static bool find_status(const struct process *process, int *status) {
  if (ask_descriptor(process->pidfd, status)) return true;
  int seen;
  bool has_seen = ask_zombie(process->pid, &seen);
  /* Waited for in between: then the number may be another's, and the descriptor knows, or will in a moment. */
  for (int i = 0; i < (has_seen ? 1 : MAX_ASKS); i++) {
    if (ask_descriptor(process->pidfd, status)) return true;
    if (!has_seen) usleep(ASK_AGAIN_US);
  }
  if (has_seen) *status = seen;
  return has_seen;
}

/* `status`: NULL when nobody knows. */
static void tell(struct stream *stream, struct frame *frame, struct process *process, const int *status) {
  if (process->executed) {
    frame_begin(frame, FRAME_EXIT, 0, (uint32_t)process->pid);
    frame_number(frame, FIELD_EXEC, process->exec);
    if (status != NULL && WIFSIGNALED(*status)) frame_number(frame, FIELD_SIGNAL, (uint32_t)WTERMSIG(*status));
    else if (status != NULL) frame_number(frame, FIELD_CODE, (uint32_t)WEXITSTATUS(*status));
    stream_put(stream, frame);
  }
  process_forget(process);
}

void tell_exit(struct stream *stream, struct frame *frame, struct process *process) {
  int status = 0;
  processes_lock();
  bool is_known = process->executed && find_status(process, &status);
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
  int pidfd = (int)syscall(SYS_pidfd_open, pid, 0), status = 0;
  waitpid(pid, NULL, 0);
  bool known = pidfd >= 0 && ask_descriptor(pidfd, &status) && WEXITSTATUS(status) == 7;
  if (pidfd >= 0) close(pidfd);
  return known;
}
