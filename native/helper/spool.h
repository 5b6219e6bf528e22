/*
 * A directory of ours for files that are about to be destroyed, under numbers, and a log of frames beside them that says what
 * they were. It is there whatever happens to us then.
 */
#ifndef SAVEPOINT_SPOOL_H
#define SAVEPOINT_SPOOL_H

#include "frames.h"
#include "tracee.h"

/* `directory`: its file `target` has the path below which files are kept; NULL: none are. */
void spool_open(const char *directory);
/* That path; NULL when there is none. */
const char *spool_target(void);
/*
 * What was the target until the run moved it is followed, up to so many, and what is at that path then is the target as well.
 */
enum { SPOOL_FORMER = 4, SPOOL_PRESENT = SPOOL_FORMER, SPOOL_NONE };
/* Whether the place lies in the target, or has the target in it. */
bool spool_concerns(const struct place *place);
/* Its path below the target, with the slash before it; NULL when it is not in there. */
const char *spool_inside(const struct place *place);
/* In which it is: a number below SPOOL_FORMER, SPOOL_PRESENT, SPOOL_NONE. */
unsigned spool_which(const struct place *place);
/* Its path as it would be were the target where it was in the beginning; NULL when it is not in there. */
const char *spool_path(const struct place *place, size_t *length);
/* Whether what is at the path of the target goes, or comes, with what is at the place. */
bool spool_moves(const struct place *place);
/* What is at the path of the target is about to be moved, and followed from then on. Returns its number; SPOOL_NONE: there is nothing new to follow. */
unsigned spool_follow(void);

/* A regular file, or a symbolic link, under a number, by another name or by a copy with its extended attributes; 0 when that is not possible. */
uint32_t spool_link(const struct place *place);
uint32_t spool_copy(const struct place *place);
/* The bytes of a larger one are not copied: only where they can be shared. */
uint32_t spool_copy_up_to(const struct place *place, off_t size);
/*
 * What loses its last name in the same moment is no secret as long as it has one here: `fstat` counts it, as some who lock files do, and
 * whoever watches the file hears of its end only when that goes. So of what is not larger there is a copy.
 */
enum { SPOOL_SMALL = 1 << 20 };
/* The name that a file may have here is none of its own; whether it has one. */
bool spool_discount(struct place *place);
/* What has a name here is about to be overwritten, wherever it is by now: what is here becomes a copy. */
void spool_detach(const struct place *place);
/* The same of a file of any size; `errno` says why not. */
uint32_t spool_copy_any(const struct place *place);
void spool_remove(uint32_t number);

/* For whoever cannot write to the disk of the spool without end. */
uint64_t spool_free_bytes(void);

/* Finishes the frame. One that does not fit is left out as a whole. */
bool spool_log(struct frame *frame);
/* The same of several that are finished: all or none. */
bool spool_log_frames(const uint8_t *bytes, size_t length);

#endif
