/* Tables for i386; x32 has the same numbers, with a bit set, but for a few. See foreign.h. */
#define _GNU_SOURCE
#include "foreign.h"

#include <linux/audit.h>

#include "filter.h"
#include "newer-calls.h"

#ifdef __x86_64__

enum { X32_EXECVE = 520, X32_EXECVEAT = 545, X32_FIRST_OWN = 512 };

const struct foreign_call foreign_looks[] = {
    {18, __NR_stat},         {84, __NR_lstat},         {106, __NR_stat},          {107, __NR_lstat},
    {195, __NR_stat},        {196, __NR_lstat},        {300, __NR_newfstatat},    {383, __NR_statx},
    {33, __NR_access},       {307, __NR_faccessat},    {439, __NR_faccessat2},    {85, __NR_readlink},
    {305, __NR_readlinkat},  {99, __NR_statfs},        {268, __NR_statfs},        {229, __NR_getxattr},
    {230, __NR_lgetxattr},   {232, __NR_listxattr},    {233, __NR_llistxattr},    {292, __NR_inotify_add_watch},
    {12, __NR_chdir},        {133, __NR_fchdir},       {61, __NR_chroot},         {217, __NR_pivot_root},
    {341, __NR_name_to_handle_at}, {342, __NR_open_by_handle_at},
};
const size_t foreign_look_count = sizeof foreign_looks / sizeof *foreign_looks;

/* What changes files, or starts programs: what the filter tells of in every run. */
static const struct foreign_call changes[] = {
    {5, __NR_open},          {295, __NR_openat},       {437, __NR_openat2},       {8, __NR_creat},
    {9, __NR_link},          {10, __NR_unlink},        {OTHER_ARCHITECTURE_EXEC, __NR_execve}, {358, __NR_execveat},
    {14, __NR_mknod},        {15, __NR_chmod},         {16, __NR_lchown},         {30, __NR_utime},
    {38, __NR_rename},       {39, __NR_mkdir},         {40, __NR_rmdir},          {83, __NR_symlink},
    {92, __NR_truncate},     {94, __NR_fchmod},        {95, __NR_fchown},         {193, __NR_truncate},
    {198, __NR_lchown},      {207, __NR_fchown},       {212, __NR_chown},         {226, __NR_setxattr},
    {227, __NR_lsetxattr},   {228, __NR_fsetxattr},    {235, __NR_removexattr},   {236, __NR_lremovexattr},
    {237, __NR_fremovexattr}, {271, __NR_utimes},      {296, __NR_mkdirat},       {297, __NR_mknodat},
    {298, __NR_fchownat},    {299, __NR_futimesat},    {301, __NR_unlinkat},      {302, __NR_renameat},
    {303, __NR_linkat},      {304, __NR_symlinkat},    {306, __NR_fchmodat},      {320, __NR_utimensat},
    {353, __NR_renameat2},   {361, __NR_bind},         {412, __NR_utimensat},     {452, __NR_fchmodat2},
    {463, __NR_setxattrat},  {466, __NR_removexattrat}, {469, __NR_file_setattr},
};

static int find(const struct foreign_call *table, size_t count, int number) {
  for (size_t i = 0; i < count; i++) {
    if (table[i].number == number) return table[i].native;
  }
  return -1;
}

int foreign_native(const struct seccomp_data *call) {
  if (call->arch == AUDIT_ARCH_I386) {
    int native = find(changes, sizeof changes / sizeof *changes, call->nr);
    return native >= 0 ? native : find(foreign_looks, foreign_look_count, call->nr);
  }
  if (call->arch != AUDIT_ARCH_X86_64 || call->nr < X32_BIT) return -1;
  int number = call->nr - X32_BIT;
  if (number == X32_EXECVE) return __NR_execve;
  if (number == X32_EXECVEAT) return __NR_execveat;
  return number < X32_FIRST_OWN ? number : -1;
}

#else

const struct foreign_call foreign_looks[] = {{-1, -1}};
const size_t foreign_look_count = 0;

int foreign_native(const struct seccomp_data *call) {
  (void)call;
  return -1;
}

#endif
