/* Executions that wait until the reader has seen to it that what they destroy can be brought back. Any thread may call. */
#ifndef SAVEPOINT_HOLDS_H
#define SAVEPOINT_HOLDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Before anything else, and before the guard is forked: whoever survives must know what waits. False without memory. */
bool holds_share(void);
/*
 * `release`: lets what was added with a key go on. `names`: programs to hold, with commas between them, `*` for all; NULL for
 * none. `rm=rR`: only with an option that has one of these letters, or a long one. `git/log/branch=dD`: not when the first
 * argument is one of these words, unless it comes with an option that has, or a long one that begins with, one of its letters;
 * options may be before it that are words, too, `-C=+` with a value.
 * `xargs?rm`: only with an argument that is one of these. What cannot destroy anything need not wait for an answer.
 */
void holds_init(void (*release)(uint64_t key), const char *names, uint64_t max_ns);
/* As they were given, each with a NUL behind it, the name of the program before them. */
struct arguments {
  const char *bytes;
  size_t length;
  bool complete;
};
/* Whether a program is to be held, by the last part of its path or of the name that it is called by. */
bool holds_want(const char *program, const struct arguments *arguments);
/* Notes that this process, whoever has this key, waits. False when that is not possible: then it goes on. */
bool holds_add(uint64_t key, pid_t pid, uint32_t exec);
void holds_release(uint32_t number);

/*
 * While the state before the run is still being captured, changes wait as well, without a limit: from here until
 * holds_end_changes, which lets all go on.
 */
void holds_start_changes(void);
void holds_end_changes(void);
bool holds_want_changes(void);
/* The number to release it by; 0 when it cannot be held. */
uint32_t holds_add_change(uint64_t key, pid_t pid);
/* The command itself does not begin before what it inherits is safe. */
bool holds_add_first(uint64_t key, pid_t pid, uint32_t exec);

/* Nobody answers any more: all go on, and nothing is held again. Also for the guard, after the helper's death. */
void holds_give_up(void);
/* All that wait. Only for the guard, after the helper's death: nobody else may add or release any meanwhile. */
void holds_each(void (*visit)(uint64_t key, pid_t pid));
/* Who waits: the first `room` of them, into `pids`; returns how many. */
size_t holds_waiting(pid_t *pids, size_t room);
/* When the next one has waited long enough; 0: none waits. */
uint64_t holds_deadline(void);
/* Lets one go on that has waited too long, and returns its execution; 0 when there is none. */
uint32_t holds_expire(void);

#endif
