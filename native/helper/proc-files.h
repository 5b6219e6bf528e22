/* What the small files in /proc tell of a process. */
#ifndef SAVEPOINT_PROC_FILES_H
#define SAVEPOINT_PROC_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The link /proc/TID/`name` as text; 0 when it cannot be read. */
size_t read_link(pid_t tid, const char *name, char *out, size_t room);
/* What the file /proc/PID/`name` has, as far as there is room: how many bytes; -1 when it cannot be read. */
ssize_t read_file(pid_t pid, const char *name, void *out, size_t room);
/* The same of one that is text, with a NUL behind it; false when there is nothing. */
bool read_text_file(pid_t pid, const char *name, char *out, size_t room);
/* Thread group and parent; false when the process is gone. */
bool find_parents(pid_t tid, pid_t *group, pid_t *parent);

#endif
