/* Reads the beginning of a program as the system does. See program.h. */
#define _GNU_SOURCE
#include "program.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { HEAD_BYTES = 256, MAX_INTERPRETERS = 5 };

static bool is_executable(const struct place *place) {
  return place->known && place->exists && S_ISREG(place->stat.st_mode) &&
         faccessat(AT_FDCWD, place->path, X_OK, AT_EACCESS) == 0;
}

/* The interpreter in the first line of a script; NULL when it is none. */
static char *interpreter_in(char *head, ssize_t length) {
  if (length < 3 || head[0] != '#' || head[1] != '!') return NULL;
  head[length] = 0;
  char *start = head + 2 + strspn(head + 2, " \t");
  start[strcspn(start, " \t\r\n")] = 0;
  return *start == 0 ? NULL : start;
}

bool program_loads(pid_t tid, const struct place *place, struct stat *loaded) {
  struct place current = *place;
  for (int i = 0; i < MAX_INTERPRETERS; i++) {
    if (!is_executable(&current)) return false;
    *loaded = current.stat;
    int fd = open(current.path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return true; /* executable but not readable: there is nothing to look at */
    char head[HEAD_BYTES + 1];
    ssize_t length = pread(fd, head, HEAD_BYTES, 0);
    close(fd);
    if (length >= 4 && memcmp(head, "\177ELF", 4) == 0) return true;
    char *interpreter = length < 0 ? NULL : interpreter_in(head, length);
    if (interpreter == NULL) return false;
    find_place(tid, AT_FDCWD, interpreter, true, &current);
  }
  return false;
}
