/*
 * Calls of btrfs that make or delete a subvolume, as the calls that make or delete a directory: what is deleted with all in it,
 * and made again, is not what it was. And the one that makes it writable, or read-only.
 */
#ifndef SAVEPOINT_SUBVOLUMES_H
#define SAVEPOINT_SUBVOLUMES_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct call;

/* Second arguments of `ioctl`, the same for 32-bit programs. */
extern const unsigned subvolume_kinds[];
extern const size_t subvolume_kind_count;

/* Whether it is such a call, of the numbers of this architecture. */
bool subvolume_concerns(const struct seccomp_data *call);
/* Into what the same call for a directory would be; false when it names none: by the number of a subvolume. */
bool subvolume_translate(pid_t tid, struct seccomp_data *call);
/* Whether it is about what is kept for us (protect.h), said by somebody else. After it was translated. */
bool subvolume_is_refused(const struct call *call);

#endif
