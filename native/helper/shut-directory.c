/* By its descriptor, so that no other file can be meant. See shut-directory.h. */
#define _GNU_SOURCE
#include "shut-directory.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { LIST_AND_ENTER = 0500, PERMISSIONS = 07777 };

enum { LINK_ROOM = 32 };

/* Another way to what is open by O_PATH, which can be neither listed nor changed. */
static const char *link_to(int fd, char link[LINK_ROOM]) {
  snprintf(link, LINK_ROOM, "/proc/self/fd/%d", fd);
  return link;
}

static int set_mode(int fd, mode_t mode) {
  char link[LINK_ROOM];
  return chmod(link_to(fd, link), mode);
}

static void shut_again(const struct shut_directory *shut) {
  struct stat now;
  if (shut->fd < 0) return;
  /* Not over a mode that somebody else set meanwhile. */
  if (fstat(shut->fd, &now) == 0 && (now.st_mode & PERMISSIONS) == (shut->mode | LIST_AND_ENTER)) set_mode(shut->fd, shut->mode);
  close(shut->fd);
}

DIR *shut_open(const struct place *directory, struct shut_directory *shut) {
  char link[LINK_ROOM];
  struct stat stat;
  shut->fd = -1;
  if (geteuid() != 0 && directory->stat.st_uid == geteuid() && (directory->stat.st_mode & LIST_AND_ENTER) != LIST_AND_ENTER) {
    shut->fd = open(directory->path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (shut->fd < 0) return NULL;
    shut->mode = fstat(shut->fd, &stat) == 0 ? stat.st_mode & PERMISSIONS : LIST_AND_ENTER;
    if ((shut->mode & LIST_AND_ENTER) != LIST_AND_ENTER) set_mode(shut->fd, shut->mode | LIST_AND_ENTER);
  }
  DIR *list = opendir(shut->fd < 0 ? directory->path : link_to(shut->fd, link));
  if (list == NULL) shut_again(shut);
  return list;
}

void shut_close(DIR *list, const struct shut_directory *shut) {
  closedir(list);
  shut_again(shut);
}
