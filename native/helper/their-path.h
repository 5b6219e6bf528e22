/*
 * Opens what a path means to another process. The system resolves it for us as far as that comes to the same; it does not
 * where the process has another root or other mounts (then an absolute link on the way, and `..` at its root, mean something
 * else to us), and where a link leads through /proc/self.
 */
#ifndef SAVEPOINT_THEIR_PATH_H
#define SAVEPOINT_THEIR_PATH_H

#include <sys/types.h>

/* `path`: below /proc/ID/root, /proc/ID/cwd or /proc/ID/fd/N. Links are followed. A descriptor (O_PATH), or -1 and errno. */
int open_theirs(pid_t tid, const char *path, int flags);

#endif
