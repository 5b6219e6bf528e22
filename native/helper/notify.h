/* Receives what the filter stops, tells it as frames, and lets it go on. */
#ifndef SAVEPOINT_NOTIFY_H
#define SAVEPOINT_NOTIFY_H

#include <sys/types.h>

#include "frames.h"

struct notifier {
  int listener;
  struct stream *stream;
  bool privileges_off;
  uint64_t begun_ns; /* since 1970: when the command had not begun yet */
  bool inherits; /* the command begins with something open for writing that is to be captured first */
};

/* Before anything else, and before the guard is forked; false without memory. */
bool notify_share(void);
/* Starts the thread, which runs until no filtered process is left, or the listener fails. Returns an errno. */
int notify_start(struct notifier *notifier);
/*
 * For the guard, when the helper is dead: lets everything go on unseen until no filtered process is left, beginning with
 * what the helper was looking at.
 */
void notify_pass(int listener);
/*
 * The same while the state before the run is still being captured: what a change would destroy is nowhere yet. So whoever is
 * about to make one, or to execute anything, is killed instead.
 */
void notify_end(int listener);
/* Lets one call go on, by the number of its notification. */
void notify_continue(int listener, uint64_t notification);
/* Tells the writable files that process `pid` has open. */
void notify_inherited(struct notifier *notifier, pid_t pid);

#endif
