/* When the run last named files that have several names, by any of them. For one thread at a time. */
#ifndef SAVEPOINT_NAMES_H
#define SAVEPOINT_NAMES_H

#include "tracee.h"

/* `gets_name`: it has one more from now on. */
void names_note(const struct place *place, bool gets_name);
/* 0: never, or it has one name. */
uint64_t names_at(const struct place *place);
/* Also when only one is left by now. */
uint64_t names_once_at(const struct place *place);

#endif
