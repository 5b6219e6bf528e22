/* The table of system calls that are looked at. Numbers that this architecture or these headers lack are left out. */
#define _GNU_SOURCE
#include "syscalls.h"

#include <stdbool.h>

#include "newer-calls.h"

const struct rule rules[] = {
    {__NR_execve, OP_EXEC, CWD, 0, NONE, NONE, NONE, 1},
    {__NR_execveat, OP_EXEC, 0, 1, NONE, NONE, 4, 1},
#ifdef __NR_open
    {__NR_open, OP_WRITE, CWD, 0, NONE, NONE, NONE, 1},
    {__NR_creat, OP_WRITE, CWD, 0, NONE, NONE, NONE, 1},
    {__NR_rename, OP_RENAME, CWD, 0, CWD, 1, NONE, 0},
    {__NR_mkdir, OP_CREATE, CWD, 0, NONE, NONE, NONE, 0},
    {__NR_rmdir, OP_DELETE, CWD, 0, NONE, NONE, NONE, 0},
    {__NR_unlink, OP_DELETE, CWD, 0, NONE, NONE, NONE, 0},
    {__NR_link, OP_LINK, CWD, 0, CWD, 1, NONE, 0},
    {__NR_symlink, OP_CREATE, CWD, 1, NONE, NONE, NONE, 0},
    {__NR_mknod, OP_CREATE, CWD, 0, NONE, NONE, NONE, 0},
    {__NR_chmod, OP_ATTRIBUTES, CWD, 0, NONE, NONE, NONE, 1},
    {__NR_chown, OP_ATTRIBUTES, CWD, 0, NONE, NONE, NONE, 1},
    {__NR_lchown, OP_ATTRIBUTES, CWD, 0, NONE, NONE, NONE, 0},
    {__NR_utime, OP_ATTRIBUTES, CWD, 0, NONE, NONE, NONE, 1},
    {__NR_utimes, OP_ATTRIBUTES, CWD, 0, NONE, NONE, NONE, 1},
    {__NR_futimesat, OP_ATTRIBUTES, 0, 1, NONE, NONE, NONE, 1},
#endif
#ifdef __NR_renameat
    {__NR_renameat, OP_RENAME, 0, 1, 2, 3, NONE, 0},
#endif
    {__NR_openat, OP_WRITE, 0, 1, NONE, NONE, NONE, 1},
    {__NR_openat2, OP_WRITE, 0, 1, NONE, NONE, NONE, 1},
    {__NR_truncate, OP_TRUNCATE, CWD, 0, NONE, NONE, NONE, 1},
    {__NR_ftruncate, OP_TRUNCATE, 0, NONE, NONE, NONE, NONE, 0},
    {__NR_renameat2, OP_RENAME, 0, 1, 2, 3, NONE, 0},
    {__NR_mkdirat, OP_CREATE, 0, 1, NONE, NONE, NONE, 0},
    {__NR_unlinkat, OP_DELETE, 0, 1, NONE, NONE, NONE, 0},
    {__NR_linkat, OP_LINK, 0, 1, 2, 3, NONE, 0},
    {__NR_symlinkat, OP_CREATE, 1, 2, NONE, NONE, NONE, 0},
    {__NR_mknodat, OP_CREATE, 0, 1, NONE, NONE, NONE, 0},
    {__NR_fchmodat, OP_ATTRIBUTES, 0, 1, NONE, NONE, NONE, 1},
    {__NR_fchmodat2, OP_ATTRIBUTES, 0, 1, NONE, NONE, 3, 1},
    {__NR_fchownat, OP_ATTRIBUTES, 0, 1, NONE, NONE, 4, 1},
    {__NR_utimensat, OP_ATTRIBUTES, 0, 1, NONE, NONE, 3, 1},
    {__NR_setxattr, OP_ATTRIBUTES, CWD, 0, NONE, NONE, NONE, 1},
    {__NR_lsetxattr, OP_ATTRIBUTES, CWD, 0, NONE, NONE, NONE, 0},
    {__NR_removexattr, OP_ATTRIBUTES, CWD, 0, NONE, NONE, NONE, 1},
    {__NR_lremovexattr, OP_ATTRIBUTES, CWD, 0, NONE, NONE, NONE, 0},
    {__NR_setxattrat, OP_ATTRIBUTES, 0, 1, NONE, NONE, 2, 1},
    {__NR_removexattrat, OP_ATTRIBUTES, 0, 1, NONE, NONE, 2, 1},
    {__NR_file_setattr, OP_ATTRIBUTES, 0, 1, NONE, NONE, 4, 1},
    /* These work on descriptors that were opened for reading. */
    {__NR_fchmod, OP_ATTRIBUTES, 0, NONE, NONE, NONE, NONE, 0},
    {__NR_fchown, OP_ATTRIBUTES, 0, NONE, NONE, NONE, NONE, 0},
    {__NR_fsetxattr, OP_ATTRIBUTES, 0, NONE, NONE, NONE, NONE, 0},
    {__NR_fremovexattr, OP_ATTRIBUTES, 0, NONE, NONE, NONE, NONE, 0},
    {__NR_ioctl, OP_ATTRIBUTES, 0, NONE, NONE, NONE, NONE, 0},
    {__NR_bind, OP_CREATE, CWD, 1, NONE, NONE, NONE, 0},
    {__NR_mount, OP_MOUNTS, NONE, NONE, NONE, NONE, NONE, 0},
    {__NR_move_mount, OP_MOUNTS, NONE, NONE, NONE, NONE, NONE, 0},
    {__NR_unshare, OP_MOUNTS, NONE, NONE, NONE, NONE, NONE, 0},
    {__NR_setns, OP_MOUNTS, NONE, NONE, NONE, NONE, NONE, 0},
    {__NR_chroot, OP_CHROOT, CWD, 0, NONE, NONE, NONE, 1},
    {__NR_pivot_root, OP_CHROOT, CWD, 0, NONE, NONE, NONE, 1},
};
const size_t rule_count = sizeof rules / sizeof *rules;

const struct rule looking_rules[] = {
#ifdef __NR_open
    {__NR_stat, OP_STAT, CWD, 0, NONE, NONE, NONE, 1},
    {__NR_lstat, OP_STAT, CWD, 0, NONE, NONE, NONE, 0},
    {__NR_access, OP_STAT, CWD, 0, NONE, NONE, NONE, 1},
    {__NR_readlink, OP_READLINK, CWD, 0, NONE, NONE, NONE, 0},
#endif
    {__NR_newfstatat, OP_STAT, 0, 1, NONE, NONE, 3, 1},
    {__NR_statx, OP_STAT, 0, 1, NONE, NONE, 2, 1},
    {__NR_faccessat, OP_STAT, 0, 1, NONE, NONE, NONE, 1},
    {__NR_faccessat2, OP_STAT, 0, 1, NONE, NONE, 3, 1},
    {__NR_readlinkat, OP_READLINK, 0, 1, NONE, NONE, NONE, 0},
    {__NR_statfs, OP_STAT, CWD, 0, NONE, NONE, NONE, 1},
    {__NR_getxattr, OP_STAT, CWD, 0, NONE, NONE, NONE, 1},
    {__NR_lgetxattr, OP_STAT, CWD, 0, NONE, NONE, NONE, 0},
    {__NR_listxattr, OP_STAT, CWD, 0, NONE, NONE, NONE, 1},
    {__NR_llistxattr, OP_STAT, CWD, 0, NONE, NONE, NONE, 0},
    {__NR_getxattrat, OP_STAT, 0, 1, NONE, NONE, 2, 1},
    {__NR_listxattrat, OP_STAT, 0, 1, NONE, NONE, 2, 1},
    {__NR_file_getattr, OP_STAT, 0, 1, NONE, NONE, 4, 1},
    {__NR_name_to_handle_at, OP_STAT, 0, 1, NONE, NONE, NONE, 0},
    {__NR_inotify_add_watch, OP_STAT, CWD, 1, NONE, NONE, NONE, 1},
    {__NR_chdir, OP_CHDIR, CWD, 0, NONE, NONE, NONE, 1},
    {__NR_fchdir, OP_CHDIR, 0, NONE, NONE, NONE, NONE, 1},
    {__NR_open_by_handle_at, OP_BY_HANDLE, NONE, NONE, NONE, NONE, NONE, 0},
};
const size_t looking_rule_count = sizeof looking_rules / sizeof *looking_rules;

enum { MAX_NUMBER = 512 };

const struct rule *rule_for(int number) {
  static const struct rule *by_number[MAX_NUMBER];
  static bool is_filled;
  if (!is_filled) {
    for (size_t i = 0; i < rule_count; i++) by_number[rules[i].number] = &rules[i];
    for (size_t i = 0; i < looking_rule_count; i++) by_number[looking_rules[i].number] = &looking_rules[i];
    is_filled = true;
  }
  return number >= 0 && number < MAX_NUMBER ? by_number[number] : NULL;
}
