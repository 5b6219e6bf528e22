/* Executions that wait until the reader has seen to it that what they destroy can be brought back. Any thread may call. */
#ifndef SAVEPOINT_HOLDS_H
#define SAVEPOINT_HOLDS_H

#include <stdbool.h>
#include <stdint.h>

/* Before anything else, and before the guard is forked: whoever survives must know what waits. False without memory. */
bool holds_share(void);
/* `release`: lets what was added with a key go on. `names`: programs to hold, with commas between them, `*` for all; NULL for none. */
void holds_init(void (*release)(uint64_t key), const char *names, uint64_t max_ns);
/* Whether a program is to be held, by the last part of its path or of its first argument. */
bool holds_want(const char *program, const char *argument);
/* Notes that whoever has this key waits. False when that is not possible: then it goes on. */
bool holds_add(uint64_t key, uint32_t exec);
void holds_release(uint32_t exec);
/* Nobody answers any more: all go on, and nothing is held again. Also for the guard, after the helper's death. */
void holds_give_up(void);
/* When the next one has waited long enough; 0: none waits. */
uint64_t holds_deadline(void);
/* Lets one go on that has waited too long, and returns its execution; 0 when there is none. */
uint32_t holds_expire(void);

#endif
