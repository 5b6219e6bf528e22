/*
 * A signal to the process group of a run (`timeout`, `kill %1`) comes to the command, and to the supervisor, which asks us to
 * pass it on: the command would have it twice. A process that stays in that group when we leave it, the witness, tells one
 * that was meant for all from one that only the supervisor got.
 */
#ifndef SAVEPOINT_GROUP_SIGNALS_H
#define SAVEPOINT_GROUP_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* While we are in the group still, with all signals blocked. Without a witness, all is passed on at once. */
void group_signals_begin(void);
/* Passes it on, soon: not if the command has it from its group. What comes again until then is the same, as for any that is pending. */
void group_signals_pass(pid_t command, int signal);
/* When there is something to settle, by monotonic_ns; 0: there is nothing. */
uint64_t group_signals_deadline(void);
void group_signals_settle(pid_t command);
/* The command has ended, or we do: nothing is passed on any more. The second call changes nothing. */
void group_signals_end(void);
/* The witness, which is none of the run's; 0 when there is none. */
pid_t group_signals_witness(void);
/* It was killed, and waited for. */
void group_signals_lose_witness(void);

#endif
