/* Told over a pipe, whose end says that we are gone. See thaw.h. */
#define _GNU_SOURCE
#include "thaw.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_STOPPED = 65536 };

static pid_t keeper;
static int line = -1;

/* By descriptor, which cannot come to mean another; by number where there are no more descriptors. */
static void go_on(pid_t pid, int pidfd) {
  if (pidfd >= 0) syscall(SYS_pidfd_send_signal, pidfd, SIGCONT, NULL, 0);
  else kill(pid, SIGCONT);
}

/* Perhaps forked from a process with threads: nothing but system calls. */
_Noreturn void thaw_stand_by(int from) {
  static struct {
    pid_t pid;
    int pidfd;
  } stopped[MAX_STOPPED];
  size_t count = 0;
  setsid();
  /* Whoever kills the helper by its name must not mean us as well. */
  prctl(PR_SET_NAME, "savepoint-guard");
  if (from > 0) syscall(SYS_close_range, 0, from - 1, 0);
  syscall(SYS_close_range, from + 1, ~0U, 0);
  for (pid_t pid;;) {
    ssize_t got = read(from, &pid, sizeof pid);
    if (got < 0 && errno == EINTR) continue;
    if (got != (ssize_t)sizeof pid) break;
    if (count == MAX_STOPPED) continue;
    stopped[count].pid = pid;
    stopped[count++].pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
  }
  for (size_t i = 0; i < count; i++) go_on(stopped[i].pid, stopped[i].pidfd);
  _exit(0);
}

void thaw_begin(void) {
  int pipes[2];
  if (keeper > 0 || pipe2(pipes, O_CLOEXEC) != 0) return;
  keeper = fork();
  if (keeper == 0) thaw_stand_by(pipes[0]);
  close(pipes[0]);
  line = pipes[1];
  if (keeper > 0) return;
  close(line);
  line = -1;
}

void thaw_note(pid_t pid) {
  /* Should it have been killed, there is nobody left to tell. */
  if (line >= 0 && write(line, &pid, sizeof pid) < 0) return;
}

void thaw_end(void) {
  if (keeper <= 0) return;
  /* Before the pipe ends: it would take that for our death. */
  kill(keeper, SIGKILL);
  waitpid(keeper, NULL, 0);
  close(line);
  keeper = 0;
  line = -1;
}

pid_t thaw_keeper(void) { return keeper; }
