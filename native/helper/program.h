/* Whether the system would execute a file, and which file that really starts. */
#ifndef SAVEPOINT_PROGRAM_H
#define SAVEPOINT_PROGRAM_H

#include <stdbool.h>
#include <sys/types.h>

#include "tracee.h"

/*
 * `place` is what is to be executed, as thread `tid` sees it. True when that will most likely succeed; then `loaded` says
 * which file the process will be: the program, or the interpreter of a script.
 */
bool program_loads(pid_t tid, const struct place *place, struct stat *loaded);

/*
 * Most programs are executed again and again. `text` is the path as it was given: whether it still is the program, and no
 * script, that was remembered under it; then `place` is filled. For one thread at a time.
 */
bool program_recall(pid_t tid, const char *text, struct place *place);
void program_remember(const char *text, const struct place *place);

#endif
