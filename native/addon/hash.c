/* BLAKE3 for JavaScript: in one call, or piece by piece with a state that lies in a Buffer. And random bytes. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "addon.h"
#include "hash.h"

static napi_value make_id(napi_env env, const uint8_t id[BLAKE3_OUT_BYTES]) {
  napi_value value;
  return napi_create_string_latin1(env, (const char *)id, BLAKE3_OUT_BYTES, &value) == napi_ok ? value : NULL;
}

napi_value addon_hash_bytes(napi_env env, napi_callback_info info) {
  napi_value arguments[1];
  struct bytes_view bytes;
  uint8_t id[BLAKE3_OUT_BYTES];
  if (!get_arguments(env, info, 1, arguments) || !get_buffer(env, arguments[0], &bytes)) return NULL;
  blake3_hash(bytes.data, bytes.length, id);
  return make_id(env, id);
}

napi_value addon_hasher_new(napi_env env, napi_callback_info info) {
  (void)info;
  struct blake3 state;
  memset(&state, 0, sizeof state);
  blake3_init(&state);
  return make_buffer_copy(env, &state, sizeof state);
}

bool get_hash_state(napi_env env, napi_value value, struct bytes_view *view, struct blake3 *state) {
  if (!get_buffer(env, value, view)) return false;
  if (view->length == sizeof *state) memcpy(state, view->data, sizeof *state);
  if (view->length != sizeof *state || state->depth >= BLAKE3_MAX_DEPTH ||
      state->depth != (uint32_t)__builtin_popcountll(state->chunks) || state->buffered > BLAKE3_CHUNK_BYTES) {
    napi_throw_type_error(env, "ERR_INVALID_ARG_VALUE", "expected a state of hasherNew");
    return false;
  }
  return true;
}

napi_value addon_hasher_update(napi_env env, napi_callback_info info) {
  napi_value arguments[2];
  struct bytes_view view, bytes;
  struct blake3 state;
  if (!get_arguments(env, info, 2, arguments) || !get_hash_state(env, arguments[0], &view, &state) ||
      !get_buffer(env, arguments[1], &bytes)) {
    return NULL;
  }
  blake3_update(&state, bytes.data, bytes.length);
  memcpy(view.data, &state, sizeof state);
  return NULL;
}

napi_value addon_hasher_digest(napi_env env, napi_callback_info info) {
  napi_value arguments[1];
  struct bytes_view view;
  struct blake3 state;
  uint8_t id[BLAKE3_OUT_BYTES];
  if (!get_arguments(env, info, 1, arguments) || !get_hash_state(env, arguments[0], &view, &state)) return NULL;
  blake3_digest(&state, id);
  return make_id(env, id);
}

/* getentropy gives at most this many. */
#define RANDOM_MAX 256

/* Names need a few of them in every process, and to load node:crypto for that takes 5 ms. */
napi_value addon_random_bytes(napi_env env, napi_callback_info info) {
  napi_value arguments[1];
  uint32_t length;
  uint8_t bytes[RANDOM_MAX];
  if (!get_arguments(env, info, 1, arguments)) return NULL;
  if (napi_get_value_uint32(env, arguments[0], &length) != napi_ok || length > RANDOM_MAX) {
    napi_throw_range_error(env, "ERR_OUT_OF_RANGE", "expected a number up to 256");
    return NULL;
  }
  if (getentropy(bytes, length) != 0) {
    throw_errno(env, errno, "getentropy", NULL, 0);
    return NULL;
  }
  return make_buffer_copy(env, bytes, length);
}
