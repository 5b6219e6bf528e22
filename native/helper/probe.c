/* Whether the seccomp driver works here. See supervise.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exits.h"
#include "filter.h"
#include "supervise.h"

int probe(void) {
  if (!exits_are_known()) {
    printf("this kernel does not tell how processes ended (Linux 6.15 does)\n");
    return 1;
  }
  pid_t pid = fork();
  if (pid == 0) {
    bool privileges_off;
    int listener = filter_install(false, &privileges_off);
    _exit(listener >= 0 ? (privileges_off ? 200 : 0) : errno);
  }
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) {
    printf("a process for the test could not be started\n");
    return 1;
  }
  int error = WEXITSTATUS(status);
  if (error == 0 || error == 200) {
    printf(error == 0 ? "works\n" : "works, without new privileges\n");
    return 0;
  }
  printf("%s\n", error == EBUSY ? "another tracer of this kind is at work outside" : strerror(error));
  return 1;
}
