/* PIDFD_GET_INFO. See pidfd.h. */
#define _GNU_SOURCE
#include "pidfd.h"

#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Newer than the headers of most systems. */
struct info {
  uint64_t mask, cgroup;
  uint32_t pid, tgid, ppid, ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid;
  int32_t exit_code;
};
_Static_assert(sizeof(struct info) == 64, "the first version of struct pidfd_info");
enum { INFO_PID = 1 << 0, INFO_EXIT = 1 << 3 };
#define GET_INFO _IOWR(0xFF, 11, struct info)

static bool ask(int pidfd, uint64_t what, struct info *info) {
  *info = (struct info){.mask = what};
  return ioctl(pidfd, GET_INFO, info) == 0 && (info->mask & what) == what;
}

int pidfd_of(pid_t pid) { return (int)syscall(SYS_pidfd_open, pid, 0); }

bool pidfd_parents(int pidfd, pid_t *pid, pid_t *parent) {
  struct info info;
  if (!ask(pidfd, INFO_PID, &info)) return false;
  *pid = (pid_t)info.tgid;
  *parent = (pid_t)info.ppid;
  return true;
}

bool pidfd_status(int pidfd, int *status) {
  struct info info;
  if (!ask(pidfd, INFO_EXIT, &info)) return false;
  *status = info.exit_code;
  return true;
}
