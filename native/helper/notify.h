/* Receives what the filter stops, tells it as frames, and lets it go on. */
#ifndef SAVEPOINT_NOTIFY_H
#define SAVEPOINT_NOTIFY_H

#include <sys/types.h>

#include "frames.h"

struct notifier {
  int listener;
  struct stream *stream;
  bool privileges_off;
};

/* Runs until no filtered process is left, or the listener fails. For a thread of its own; the argument is a notifier. */
void *notify_loop(void *notifier);
/* Lets everything go on unseen until no filtered process is left: for when nobody watches any more. */
void notify_pass(int listener);
/* Tells the writable files that process `pid` has open. */
void notify_inherited(struct notifier *notifier, pid_t pid);

#endif
