/*
 * Extended attributes of one object, whatever it is, and their encoding: per attribute u16 name length, name, u32 value
 * length, value; sorted by name.
 */
#ifndef SAVEPOINT_XATTR_H
#define SAVEPOINT_XATTR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An open file, or (`proc` not empty) an O_PATH descriptor: reached through /proc, a symlink is not followed either. */
struct xattr_target {
  int fd;
  char proc[40];
};

/* Room for the largest list and the largest value that the kernel gives out. */
struct xattr_scratch {
  char *list;
  uint8_t *value;
};

struct xattr_target xattr_open_file(int fd);
struct xattr_target xattr_path_only(int fd);
bool xattr_scratch_init(struct xattr_scratch *scratch);
void xattr_scratch_free(struct xattr_scratch *scratch);

/*
 * Encodes all attributes into `out`. `*needed` is the size of the whole encoding: when it exceeds `room`, `out` holds
 * nothing useful. Attributes that may not be read are left out. Returns 0 or an errno.
 */
int xattr_encode(const struct xattr_target *target, struct xattr_scratch *scratch, uint8_t *out, size_t room, size_t *needed);

/*
 * Makes the set of attributes equal to `encoded`; touches only those that differ. What the kernel refuses is passed over
 * and the first refusal stored in `*refused`. Returns 0, EINVAL for a malformed encoding (nothing is changed then), or
 * the errno of a failure that is no refusal (ENOSPC, EIO), which ends the work half-way.
 */
int xattr_apply(const struct xattr_target *target, struct xattr_scratch *scratch, const uint8_t *encoded, size_t length,
                int *refused);

#endif
