/* Programs that the system hands to others because somebody has set that up (binfmt_misc): by their ending, or their first bytes. */
#ifndef SAVEPOINT_BINFMT_H
#define SAVEPOINT_BINFMT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* So much of a program the system looks at; what is shorter has zeros behind it. */
enum { HEAD_BYTES = 256 };

struct handler {
  const char *interpreter;
  bool is_open; /* since the rule was made: it is that file, whatever is at its path in the view of whoever executes */
};

/*
 * What starts the program that begins with `head` and was called by `path`; false: nothing that we see. Rules that are not mounted
 * in our view are not seen. Cheap, as the rules are remembered for a second; `anew`: they must not be. For one thread at a time.
 */
bool binfmt_find(const uint8_t head[HEAD_BYTES], const char *path, bool anew, struct handler *handler);
/* Whether those that were looked through last are all there are, for whoever has our view of the system. */
bool binfmt_seen(void);

#endif
