/* The state of a hash as JavaScript holds it. */
#ifndef SAVEPOINT_HASH_H
#define SAVEPOINT_HASH_H

#include "blake3.h"
#include "napi-util.h"

/* It is copied, because a Buffer need not be aligned, and checked, because JavaScript could change it. False: thrown. */
bool get_hash_state(napi_env env, napi_value value, struct bytes_view *view, struct blake3 *state);

#endif
