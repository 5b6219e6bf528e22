/* Small files of a process in /proc. See proc-files.h. */
#define _GNU_SOURCE
#include "proc-files.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

size_t read_link(pid_t tid, const char *name, char *out, size_t room) {
  char link[64];
  snprintf(link, sizeof link, "/proc/%d/%s", tid, name);
  ssize_t length = readlink(link, out, room - 1);
  if (length < 0) return 0;
  out[length] = 0;
  return (size_t)length;
}

ssize_t read_file(pid_t pid, const char *name, void *out, size_t room) {
  char file[64];
  snprintf(file, sizeof file, "/proc/%d/%s", pid, name);
  int fd = open(file, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  size_t done = 0;
  for (ssize_t got; done < room && (got = read(fd, (char *)out + done, room - done)) > 0;) done += (size_t)got;
  close(fd);
  return (ssize_t)done;
}

bool read_text_file(pid_t pid, const char *name, char *out, size_t room) {
  ssize_t length = read_file(pid, name, out, room - 1);
  if (length <= 0) return false;
  out[length] = 0;
  return true;
}

bool find_parents(pid_t tid, pid_t *group, pid_t *parent) {
  char text[1024];
  if (!read_text_file(tid, "status", text, sizeof text)) return false;
  const char *group_at = strstr(text, "\nTgid:"), *parent_at = strstr(text, "\nPPid:");
  if (group_at == NULL || parent_at == NULL) return false;
  *group = atoi(group_at + 6);
  *parent = atoi(parent_at + 6);
  return true;
}
