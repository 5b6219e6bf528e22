/* Which files the processes of the run could write without another call that we would see. */
#ifndef SAVEPOINT_HOLDERS_H
#define SAVEPOINT_HOLDERS_H

#include "frames.h"

/*
 * Tells, as FRAME_HELD, each regular file that a descendant of ours has open for writing or mapped to be written. Returns
 * how many processes could not be looked at.
 */
unsigned tell_holders(struct stream *stream, struct frame *frame);

#endif
