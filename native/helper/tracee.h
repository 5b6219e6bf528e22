/* Looks into a process that waits in a system call: its memory, and the files that its paths mean. */
#ifndef SAVEPOINT_TRACEE_H
#define SAVEPOINT_TRACEE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "proc-files.h"

enum { PATH_ROOM = 8192 };

struct place {
  bool known;  /* false: the path could not be read, or what it starts from is gone */
  bool exists; /* then `stat` is filled */
  bool moot;   /* not known, because there is nothing with a name that could be changed */
  bool shut;   /* known, but we may not look whether it exists: set by name_entry, cleared by whoever asks */
  struct stat stat;
  size_t length;
  char path[PATH_ROOM]; /* absolute, without symbolic links (but in the last place, if that is not followed) */
};

/* What was read before may have changed: to be called before a process is looked at anew. */
void forget_memory(void);
/* Whether it is not for us to read: of an undumpable process, when we are not root. */
bool memory_is_shut(pid_t tid);
/* Bytes that were read; fewer than asked for where the memory ends. */
size_t read_memory(pid_t tid, uint64_t address, void *out, size_t length);
/* Length of the text without its NUL, or -1 when it cannot be read or does not end within `room`. */
ssize_t read_text(pid_t tid, uint64_t address, char *out, size_t room);
/* The same, sooner where nothing else is read beside it. */
ssize_t read_path(pid_t tid, uint64_t address, char *out, size_t room);

/* What `path`, seen by thread `tid` from its directory `dir` (AT_FDCWD or a descriptor of its), means. */
void find_place(pid_t tid, int dir, const char *path, bool follows, struct place *place);
/* The path of an open descriptor of ours; false when what it means has no name any more. */
bool name_descriptor(int fd, const struct stat *stat, struct place *place);
/* What a link in /proc to what `place` is shows, also where nothing has that name any more; false when it shows nothing. */
bool name_as_shown(const char *link, struct place *place);
/* Names what is in directory `parent` (open) as `name`, and looks whether it is there. */
bool name_entry(int parent, const char *name, struct place *place);
/* What its descriptor `fd` means. */
void find_descriptor(pid_t tid, int fd, struct place *place);
/* A descriptor (O_PATH) of what find_place finds, links followed, also where that has no path; with an empty path of descriptor `dir`. */
int open_place(pid_t tid, int dir, const char *path);

#endif
