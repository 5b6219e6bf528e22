/*
 * Which paths, as the calls name them, have been seen already: most calls of a build look at the same few paths again and again, and
 * what they mean need not be found out anew each time. For one thread.
 */
#ifndef SAVEPOINT_RECORD_KNOWN_H
#define SAVEPOINT_RECORD_KNOWN_H

#include "call.h"
#include "mounts.h"
#include "seen.h"

enum { KNOWN_STAT = 4 };

struct known {
  uint64_t hash, check;
  uint8_t asks; /* which kind of look */
  bool is_plain; /* no part of it goes up, or stays */
  bool is_name;  /* one name in a directory that the system named: no link can be on the way */
  size_t length;
  char path[PATH_ROOM]; /* as it was named, from the root on */
};

/* What the path of the call is, without looking at any file; false when that cannot be said. */
bool known_look_up(const struct call *call, const struct rule *rule, bool follows, struct known *known);
/* Whether the same look was told before, and nothing has changed since that would make it another. */
bool known_is_told(const struct known *known);
/* `seen`: NULL when it is not recorded. */
void known_remember(const struct known *known, const struct seen *seen);
/* The process goes to another directory. */
void known_moves(const struct call *call);
/* Paths may mean something else from here on. */
void known_forget(void);
/* How often that has been so. */
uint32_t known_generation(void);
/* They do for some processes and not for others: from here on nothing is known. */
void known_stop(void);

/* Whether the call makes a symbolic link. */
bool is_link_call(int number);

#endif
