/* Which files the processes of the run could write without another call that we would see. */
#ifndef SAVEPOINT_HOLDERS_H
#define SAVEPOINT_HOLDERS_H

#include <stdbool.h>
#include <stdint.h>

#include "frames.h"

/* Processes that could not be looked at, and when the last of them was started. */
struct unseen {
  uint32_t count;
  uint64_t since_ns;
  bool unknown; /* of one at least nobody tells when that was */
};

/*
 * Tells, as FRAME_HELD, each regular file that a descendant of ours has open for writing or mapped to be written. Returns
 * who could not be looked at.
 */
struct unseen tell_holders(struct stream *stream, struct frame *frame);

#endif
