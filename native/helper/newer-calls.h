/* Numbers of calls that are newer than the headers of some systems; they are the same on every architecture. */
#ifndef SAVEPOINT_NEWER_CALLS_H
#define SAVEPOINT_NEWER_CALLS_H

#include <sys/syscall.h>

#ifndef __NR_io_uring_setup
#define __NR_io_uring_setup 425
#endif
#ifndef __NR_move_mount
#define __NR_move_mount 429
#endif
#ifndef __NR_openat2
#define __NR_openat2 437
#endif
#ifndef __NR_faccessat2
#define __NR_faccessat2 439
#endif
#ifndef __NR_fchmodat2
#define __NR_fchmodat2 452
#endif
#ifndef __NR_setxattrat
#define __NR_setxattrat 463
#define __NR_removexattrat 466
#endif
#ifndef __NR_getxattrat
#define __NR_getxattrat 464
#define __NR_listxattrat 465
#endif
#ifndef __NR_file_setattr
#define __NR_file_getattr 468
#define __NR_file_setattr 469
#endif

#endif
