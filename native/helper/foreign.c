/* Tables for i386; x32 has the same numbers, with a bit set, but for a few. See foreign.h. */
#define _GNU_SOURCE
#include "foreign.h"

#include <linux/audit.h>

#include "newer-calls.h"
#include "tracee.h"

#ifdef __x86_64__

enum { X32_EXECVE = 520, X32_EXECVEAT = 545, X32_FIRST_OWN = 512, BIND_ARGUMENTS = 3 };

const struct foreign_call foreign_looks[] = {
    {18, __NR_stat},         {84, __NR_lstat},         {106, __NR_stat},          {107, __NR_lstat},
    {195, __NR_stat},        {196, __NR_lstat},        {300, __NR_newfstatat},    {383, __NR_statx},
    {33, __NR_access},       {307, __NR_faccessat},    {439, __NR_faccessat2},    {85, __NR_readlink},
    {305, __NR_readlinkat},  {99, __NR_statfs},        {268, __NR_statfs},        {229, __NR_getxattr},
    {230, __NR_lgetxattr},   {232, __NR_listxattr},    {233, __NR_llistxattr},    {292, __NR_inotify_add_watch},
    {12, __NR_chdir},        {133, __NR_fchdir},       {341, __NR_name_to_handle_at},
};
const size_t foreign_look_count = sizeof foreign_looks / sizeof *foreign_looks;

const struct foreign_call foreign_opens[] = {{5, __NR_open}, {295, __NR_openat}, {342, __NR_open_by_handle_at}};
const size_t foreign_open_count = sizeof foreign_opens / sizeof *foreign_opens;

const struct foreign_call foreign_changes[] = {
    {437, __NR_openat2},     {8, __NR_creat},          {93, __NR_ftruncate},      {194, __NR_ftruncate},
    {9, __NR_link},          {10, __NR_unlink},        {11, __NR_execve}, {358, __NR_execveat},
    {14, __NR_mknod},        {15, __NR_chmod},         {16, __NR_lchown},         {30, __NR_utime},
    {38, __NR_rename},       {39, __NR_mkdir},         {40, __NR_rmdir},          {83, __NR_symlink},
    {92, __NR_truncate},     {94, __NR_fchmod},        {95, __NR_fchown},         {193, __NR_truncate},
    {198, __NR_lchown},      {207, __NR_fchown},       {182, __NR_chown},         {212, __NR_chown},         {226, __NR_setxattr},
    {227, __NR_lsetxattr},   {228, __NR_fsetxattr},    {235, __NR_removexattr},   {236, __NR_lremovexattr},
    {237, __NR_fremovexattr}, {271, __NR_utimes},      {296, __NR_mkdirat},       {297, __NR_mknodat},
    {298, __NR_fchownat},    {299, __NR_futimesat},    {301, __NR_unlinkat},      {302, __NR_renameat},
    {303, __NR_linkat},      {304, __NR_symlinkat},    {306, __NR_fchmodat},      {320, __NR_utimensat},
    {353, __NR_renameat2},   {361, __NR_bind},         {412, __NR_utimensat},     {452, __NR_fchmodat2},
    {463, __NR_setxattrat},  {466, __NR_removexattrat}, {469, __NR_file_setattr},
    {61, __NR_chroot},       {217, __NR_pivot_root},   {21, __NR_mount},          {429, __NR_move_mount},
    {310, __NR_unshare},     {346, __NR_setns},
};
const size_t foreign_change_count = sizeof foreign_changes / sizeof *foreign_changes;

static int find(const struct foreign_call *table, size_t count, int number) {
  for (size_t i = 0; i < count; i++) {
    if (table[i].number == number) return table[i].native;
  }
  return -1;
}

static int native_of(const struct seccomp_data *call) {
  if (call->arch == AUDIT_ARCH_I386) {
    if (call->nr == FOREIGN_IOCTL) return __NR_ioctl;
    if (call->nr == FOREIGN_SOCKETCALL) return __NR_bind;
    int native = find(foreign_changes, foreign_change_count, call->nr);
    if (native < 0) native = find(foreign_opens, foreign_open_count, call->nr);
    return native >= 0 ? native : find(foreign_looks, foreign_look_count, call->nr);
  }
  if (call->arch != AUDIT_ARCH_X86_64 || call->nr < X32_BIT) return -1;
  int number = call->nr - X32_BIT;
  if (number == X32_EXECVE) return __NR_execve;
  if (number == X32_EXECVEAT) return __NR_execveat;
  return number < X32_FIRST_OWN ? number : -1;
}

/* All arguments of `socketcall` but the first, which says what it does, are in memory. */
static bool read_arguments(pid_t tid, struct seccomp_data *call) {
  uint32_t words[BIND_ARGUMENTS];
  if (read_memory(tid, call->args[1], words, sizeof words) < sizeof words) return false;
  for (size_t i = 0; i < BIND_ARGUMENTS; i++) call->args[i] = words[i];
  return true;
}

bool foreign_translate(pid_t tid, struct seccomp_data *call) {
  int native = native_of(call);
  if (native < 0) return false;
  if (call->arch == AUDIT_ARCH_I386 && call->nr == FOREIGN_SOCKETCALL && !read_arguments(tid, call)) return false;
  call->nr = native;
  return true;
}

#else

bool foreign_translate(pid_t tid, struct seccomp_data *call) {
  (void)tid;
  (void)call;
  return false;
}

#endif
