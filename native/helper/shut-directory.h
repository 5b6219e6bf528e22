/*
 * Directories that their own owner may not list or enter (`chmod 600`), open for as long as they are looked at. They can be moved all the
 * same, and whoever opens them afterwards finds all that was in them elsewhere. Should we be killed meanwhile, they stay open to their owner.
 */
#ifndef SAVEPOINT_SHUT_DIRECTORY_H
#define SAVEPOINT_SHUT_DIRECTORY_H

#include <dirent.h>

#include "tracee.h"

struct shut_directory {
  int fd; /* -1: it was not shut */
  mode_t mode;
};

/* NULL when it cannot be listed; what is in it can be looked at until shut_close. */
DIR *shut_open(const struct place *directory, struct shut_directory *shut);
void shut_close(DIR *list, const struct shut_directory *shut);

#endif
