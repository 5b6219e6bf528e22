/* Which paths were told, and when last: by hashes, since there may be very many. For one thread at a time. */
#ifndef SAVEPOINT_TOLD_H
#define SAVEPOINT_TOLD_H

#include <stddef.h>
#include <stdint.h>

void told_add(const char *path, size_t length, uint64_t at_ns);
/* 0: never, or that is not known any more. */
uint64_t told_at(const char *path, size_t length);
/* What was told before that is not asked for again. */
void told_forget(uint64_t before_ns);

#endif
