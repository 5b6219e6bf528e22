/* The seccomp filter: tells the supervisor about calls that change files or start programs, and lets all others pass. */
#ifndef SAVEPOINT_FILTER_H
#define SAVEPOINT_FILTER_H

#include <stdbool.h>

/*
 * Installs the filter in the calling thread and returns the listener's descriptor, or -1 with errno. `io_uring`: whether
 * io_uring works inside; its calls could not be seen. `looks`: tells about calls that only look at files, too.
 * `privileges_off`: set when no_new_privs had to be turned on.
 */
int filter_install(bool io_uring, bool looks, bool *privileges_off);

#endif
