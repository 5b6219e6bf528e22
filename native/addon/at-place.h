/* A path argument of a call of the *at family, resolved beneath its root. */
#ifndef SAVEPOINT_AT_PLACE_H
#define SAVEPOINT_AT_PLACE_H

#include <errno.h>
#include <stdbool.h>

#include "napi-util.h"
#include "resolve.h"

/* After place_begin() has succeeded, exactly one place_finish() or place_finish_call() releases it. */
struct place {
  struct raw_path path;
  struct resolver resolver;
  int fd;           /* the parent */
  const char *name; /* the last component */
};

/* False when it has thrown. */
bool place_begin(napi_env env, napi_value root_value, napi_value path_value, struct place *place);
/* The arguments of a call on (root, path, mode). */
bool place_begin_with_mode(napi_env env, napi_callback_info info, struct place *place, uint32_t *mode);
void place_finish(struct place *place);
/* Releases the place and throws unless `error` is 0. */
napi_value place_finish_call(napi_env env, struct place *place, int error, const char *syscall);

static inline int error_of(int result) { return result < 0 ? errno : 0; }

#endif
