/* Which system calls change files or start programs, and where their paths are among the arguments. */
#ifndef SAVEPOINT_SYSCALLS_H
#define SAVEPOINT_SYSCALLS_H

#include <stddef.h>
#include <stdint.h>

/* PATH_OP in src/tracers/frames.ts. */
enum path_op {
  OP_EXEC = 0, /* never in a PATH frame */
  OP_WRITE = 1,  /* opened for writing: from now on it may change */
  OP_CREATE = 2, /* of a directory, a link, a node or a socket */
  OP_DELETE = 3,
  OP_RENAME = 4,   /* PATH to TO */
  OP_EXCHANGE = 5, /* PATH with TO */
  OP_LINK = 6,     /* TO is another name of PATH */
  OP_ATTRIBUTES = 7,
  OP_TRUNCATE = 8,
  OP_INHERITED = 9, /* a descriptor for writing that the command was started with */
  OP_MOUNTS = 11,   /* never in a PATH frame: paths may mean something else from here on */
  /* Never in a PATH frame: calls that only look, of a recording (record.h). */
  OP_STAT = 32,
  OP_READLINK = 33,
  OP_CHDIR = 34,
  OP_CHROOT = 35,
  OP_BY_HANDLE = 36, /* opens a file that has no path */
  OP_SEEN = 10,     /* by watching: it may have changed; of a directory that came, all in it may be new */
};

enum { NONE = -1, CWD = -2 };

struct rule {
  int number;
  enum path_op op;
  int8_t dir, path;       /* arguments: the directory's descriptor (or CWD) and the path (or NONE: the descriptor itself) */
  int8_t to_dir, to_path; /* of a second path, if any */
  int8_t flags;           /* argument with AT_… flags */
  uint8_t follows;        /* whether a symbolic link in the last place is followed, unless the flags say otherwise */
};

extern const struct rule rules[];
extern const size_t rule_count;
/* Calls that look at files and change nothing: for a recording. */
extern const struct rule looking_rules[];
extern const size_t looking_rule_count;
/* Among all of them. */
const struct rule *rule_for(int number);

#endif
