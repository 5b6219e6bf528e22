/* One place per call. See at-place.h. */
#define _GNU_SOURCE
#include "at-place.h"

bool place_begin(napi_env env, napi_value root_value, napi_value path_value, struct place *place) {
  int root;
  if (!get_int(env, root_value, &root) || !get_path(env, path_value, &place->path)) return false;
  resolver_init(&place->resolver, root);
  int error = resolve(&place->resolver, place->path.bytes, place->path.length);
  place->fd = place->resolver.parent;
  place->name = place->resolver.name;
  if (error == 0) return true;
  throw_errno(env, error, "openat2", place->path.bytes, place->path.length);
  resolver_close(&place->resolver);
  free_path(&place->path);
  return false;
}

void place_finish(struct place *place) {
  resolver_close(&place->resolver);
  free_path(&place->path);
}

napi_value place_finish_call(napi_env env, struct place *place, int error, const char *syscall) {
  if (error != 0) throw_errno(env, error, syscall, place->path.bytes, place->path.length);
  place_finish(place);
  return error == 0 ? make_undefined(env) : NULL;
}

bool place_begin_with_mode(napi_env env, napi_callback_info info, struct place *place, uint32_t *mode) {
  napi_value arguments[3];
  return get_arguments(env, info, 3, arguments) && get_u32(env, arguments[2], mode) &&
         place_begin(env, arguments[0], arguments[1], place);
}
