/*
 * Arguments in, values and errors out. A getter that returns false has thrown; its caller returns NULL at once.
 */
#ifndef SAVEPOINT_NAPI_UTIL_H
#define SAVEPOINT_NAPI_UTIL_H

#include <node_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A path or name as bytes. NUL-terminated, but may hold NULs: check_path refuses those. Release with free_path. */
struct raw_path {
  char *bytes;
  size_t length;
  char inline_bytes[1024];
};

struct bytes_view {
  uint8_t *data;
  size_t length;
};

bool get_arguments(napi_env env, napi_callback_info info, size_t count, napi_value *values);
bool get_int(napi_env env, napi_value value, int *out);
bool get_u32(napi_env env, napi_value value, uint32_t *out);
/* A non-negative whole number up to 2^53. */
bool get_size(napi_env env, napi_value value, uint64_t *out);
bool get_bool(napi_env env, napi_value value, bool *out);
bool get_i64(napi_env env, napi_value value, int64_t *out);
bool get_buffer(napi_env env, napi_value value, struct bytes_view *out);
/* A latin1 string. A character above U+00FF throws EINVAL: cut to a byte it could become '/' or '.'. */
bool get_path(napi_env env, napi_value value, struct raw_path *out);
void free_path(struct raw_path *path);

/* An Error like those of node:fs: code, errno (negative), syscall, path. `path` may be NULL. */
napi_value make_errno_error(napi_env env, int error, const char *syscall, const char *path, size_t path_length);
void throw_errno(napi_env env, int error, const char *syscall, const char *path, size_t path_length);

/* These give NULL, with an exception pending, when the engine cannot make the value. */
napi_value make_undefined(napi_env env);
napi_value make_number(napi_env env, double number);
napi_value make_buffer_copy(napi_env env, const void *data, size_t length);
/* Takes ownership of malloc'd `data`, also when it fails. */
napi_value make_buffer_owning(napi_env env, void *data, size_t length);
bool set_number(napi_env env, napi_value object, const char *name, double number);
bool set_i64(napi_env env, napi_value object, const char *name, int64_t number);
bool set_u64(napi_env env, napi_value object, const char *name, uint64_t number);

#endif
