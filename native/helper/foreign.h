/* Calls of 32-bit programs, by the numbers that the same calls have for 64-bit ones: their arguments mean the same. */
#ifndef SAVEPOINT_FOREIGN_H
#define SAVEPOINT_FOREIGN_H

#include <linux/seccomp.h>
#include <stddef.h>

/* Set in the number of a call by a program of the x32 kind, which is of the same architecture otherwise. */
enum { X32_BIT = 0x40000000 };

struct foreign_call {
  short number, native;
};

/* Of i386: those that look at files and change nothing; opening for reading is not among them. */
extern const struct foreign_call foreign_looks[];
extern const size_t foreign_look_count;
/* The number that a call of another architecture has here; -1: it cannot be told. */
int foreign_native(const struct seccomp_data *call);

#endif
