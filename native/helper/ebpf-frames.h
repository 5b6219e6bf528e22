/* From what the programs in the kernel wrote into the ring to frames. */
#ifndef SAVEPOINT_EBPF_FRAMES_H
#define SAVEPOINT_EBPF_FRAMES_H

#include "ebpf-load.h"
#include "frames.h"

/* Tells one event of `length` bytes; one that makes no sense is left out. */
void ebpf_tell(struct stream *stream, struct frame *frame, const struct ebpf_event *event, size_t length);

#endif
