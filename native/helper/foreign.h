/* Calls of 32-bit programs, by the numbers that the same calls have for 64-bit ones: their arguments mean the same. */
#ifndef SAVEPOINT_FOREIGN_H
#define SAVEPOINT_FOREIGN_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Set in the number of a call by a program of the x32 kind, which is of the same architecture otherwise. */
enum { X32_BIT = 0x40000000 };

struct foreign_call {
  short number, native;
};

/* Of i386. `socketcall` is among them when it binds, `ioctl` when it sets attributes or is about a subvolume. */
enum { FOREIGN_IOCTL = 54, FOREIGN_SOCKETCALL = 102, FOREIGN_BIND = 2, FOREIGN_SETFLAGS = 0x40046602 };
/* Those that look at files and change nothing. */
extern const struct foreign_call foreign_looks[];
extern const size_t foreign_look_count;
/* Those that open a file, and may change it: which is seen by the flags. */
extern const struct foreign_call foreign_opens[];
extern const size_t foreign_open_count;
/* Those that change files or what paths mean, or start programs. */
extern const struct foreign_call foreign_changes[];
extern const size_t foreign_change_count;
/* Makes of a call of another architecture, which waits in thread `tid`, the same one of ours; false when there is none. */
bool foreign_translate(pid_t tid, struct seccomp_data *call);

#endif
