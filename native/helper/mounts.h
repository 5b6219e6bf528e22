/*
 * Paths of processes that see other mounts than we do (sandboxes, containers, `unshare -m`): the same file has another path
 * there, and the same path may be another file.
 */
#ifndef SAVEPOINT_MOUNTS_H
#define SAVEPOINT_MOUNTS_H

#include <stdbool.h>
#include <sys/types.h>

#include "tracee.h"

/* Whether a process is in another mount namespace than we are. */
bool mounts_differ(pid_t pid);
/*
 * From the view of thread `tid` into ours. What we do not see at all becomes moot, if it surely lies on no file of ours;
 * what cannot be found out becomes unknown. Where a directory has several paths, the one in our home is taken, else the one in the target.
 */
void mounts_translate(pid_t tid, struct place *place);
/* At the start: the target may have several paths in our own view already. */
void mounts_init(void);
/* Something is about to be mounted: paths in our own view may come to mean what other paths do. */
void mounts_expect(void);
/* Whether that was said. From any thread; all others, but mounts_differ, are for one alone. */
bool mounts_are_expected(void);
/* Whether paths in our own view are to be translated, too. Costs nothing when nothing was mounted. */
bool mounts_have_changed(void);

#endif
