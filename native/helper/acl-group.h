/* The rights of a group beside an access list (ACL): the mode says in their place what that list allows anybody at most (its mask). */
#ifndef SAVEPOINT_ACL_GROUP_H
#define SAVEPOINT_ACL_GROUP_H

#include <sys/stat.h>

/* Of what is at a path; -1 when it has no list, so that its mode says them. */
int acl_group(const char *path, const struct stat *stat);

#endif
