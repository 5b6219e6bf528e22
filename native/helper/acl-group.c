/* See acl-group.h. */
#define _GNU_SOURCE
#include "acl-group.h"

#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/xattr.h>

/* A longer list is none that a filesystem keeps. */
enum { MAX_ENTRIES = 1024 };

int acl_group(const char *path, const struct stat *stat) {
  if (S_ISLNK(stat->st_mode)) return -1;
  static struct {
    struct posix_acl_xattr_header header;
    struct posix_acl_xattr_entry entries[MAX_ENTRIES];
  } list;
  ssize_t got = lgetxattr(path, "system.posix_acl_access", &list, sizeof list);
  if (got <= (ssize_t)sizeof list.header) return -1;
  size_t count = ((size_t)got - sizeof list.header) / sizeof list.entries[0];
  for (size_t i = 0; i < count; i++) {
    if (list.entries[i].e_tag == ACL_GROUP_OBJ) return list.entries[i].e_perm & (int)(stat->st_mode >> 3) & 7;
  }
  return -1;
}
