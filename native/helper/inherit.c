/* By /proc/self/fd and sigaction. See inherit.h. */
#define _GNU_SOURCE
#include "inherit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drivers.h"

/* Node needs a slot for each number up to the highest. */
enum { FIRST = 3, MAX_DESCRIPTOR = 1023, TEXT_ROOM = 8192 };

static bool inherited[MAX_DESCRIPTOR + 1];

/* Marks the descriptors that an executed program would get. */
static void mark(void) {
  DIR *list = opendir("/proc/self/fd");
  if (list == NULL) return;
  for (struct dirent *entry; (entry = readdir(list)) != NULL;) {
    int fd = atoi(entry->d_name);
    if (fd < FIRST || fd > MAX_DESCRIPTOR || fd == dirfd(list)) continue;
    int flags = fcntl(fd, F_GETFD);
    inherited[fd] = flags >= 0 && (flags & FD_CLOEXEC) == 0;
  }
  closedir(list);
}

static size_t put_number(char *text, size_t at, int number) {
  bool is_first = at == 0 || text[at - 1] == ' ';
  int written = snprintf(text + at, TEXT_ROOM - at, is_first ? "%d" : ",%d", number);
  return at + (size_t)written < TEXT_ROOM ? at + (size_t)written : at;
}

/* Node would open /dev/null in its place, and the command would read an end of file. */
static void mark_closed_input(void) {
  if (fcntl(STDIN_FILENO, F_GETFD) < 0) (void)!open("/dev/null", O_PATH);
}

void close_closed_input(void) {
  int flags = fcntl(STDIN_FILENO, F_GETFL);
  if (flags >= 0 && (flags & O_PATH) != 0) close(STDIN_FILENO);
}

/* The status and the text of the driver's probe, which is made in a process of its own. */
static void probe(void) {
  static char text[256];
  int ends[2], status = 0;
  unsetenv("SAVEPOINT_PROBED");
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  pid_t pid = fork();
  if (pid == 0) {
    dup2(ends[1], STDOUT_FILENO);
    status = seccomp_driver.probe();
    fflush(stdout);
    _exit(status);
  }
  close(ends[1]);
  ssize_t length = pid < 0 ? -1 : read(ends[0], text + 2, sizeof text - 3);
  close(ends[0]);
  if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || length <= 0) return;
  text[0] = WEXITSTATUS(status) == 0 ? '0' : '1';
  text[1] = ' ';
  text[2 + length] = 0;
  setenv("SAVEPOINT_PROBED", text, 1);
}

int inherit(char **command) {
  static char text[TEXT_ROOM];
  size_t length = 0;
  mark_closed_input();
  mark();
  for (int fd = FIRST; fd <= MAX_DESCRIPTOR; fd++) {
    if (inherited[fd]) length = put_number(text, length, fd);
  }
  text[length++] = ' ';
  size_t before = length;
  for (int number = 1; number < NSIG; number++) {
    struct sigaction action;
    if (sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN) length = put_number(text, length, number);
  }
  size_t signals = length;
  text[length++] = ' ';
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max && limit.rlim_cur <= INT_MAX)
    length = put_number(text, length, (int)limit.rlim_cur);
  text[length] = 0;
  if (before > 1 || signals > before || length > signals + 1) setenv("SAVEPOINT_INHERITED", text, 1);
  else unsetenv("SAVEPOINT_INHERITED");
  probe();
  execv(command[0], command);
  fprintf(stderr, "savepoint: Cannot start %s: %s\n", command[0], strerror(errno));
  return 125;
}

void ignore_signals(const char *list) {
  for (const char *at = list; at != NULL && *at != 0; at += *at == ',') {
    char *end;
    signal((int)strtol(at, &end, 10), SIG_IGN);
    if (end == at) return;
    at = end;
  }
}

void limit_files(unsigned count) {
  struct rlimit limit;
  if (count == 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0 || count > limit.rlim_max) return;
  limit.rlim_cur = count;
  setrlimit(RLIMIT_NOFILE, &limit);
}

void note_inherited(int kept) {
  mark();
  if (kept >= 0 && kept <= MAX_DESCRIPTOR) inherited[kept] = false;
}

void close_inherited(void) {
  for (int fd = FIRST; fd <= MAX_DESCRIPTOR; fd++) {
    if (inherited[fd]) close(fd);
  }
}
