/* Whether the system would execute a file, and which file that really starts. */
#ifndef SAVEPOINT_PROGRAM_H
#define SAVEPOINT_PROGRAM_H

#include <stdbool.h>
#include <sys/types.h>

#include "tracee.h"

/* How it was said what is to be executed: `path`, seen from directory `dir`; an empty one means descriptor `dir` itself. */
struct named {
  int dir;
  const char *path;
};

enum loading {
  LOADS_NOT,
  LOADS,
  LOADS_UNSURE, /* nobody can tell from outside: only if the system has a rule for such a file that we do not see */
};

/*
 * Whether that will most likely succeed for thread `tid`, for which it is `place`; then `loaded` says which file the process will be: the
 * program, or what starts it. Of a place that exists, and is not known because it has no path, `path` is then what /proc calls it.
 */
enum loading program_loads(pid_t tid, const struct named *named, struct place *place, struct stat *loaded);

/*
 * Most programs are executed again and again. `text` is the path as it was given: whether it still is the program, and no
 * script, that was remembered under it; then `place` is filled. For one thread at a time.
 */
bool program_recall(pid_t tid, const char *text, struct place *place);
void program_remember(const char *text, const struct place *place);

#endif
