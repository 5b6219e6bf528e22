/* readEntries for JavaScript: many entries in one call. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>

#include "addon.h"
#include "napi-util.h"
#include "read.h"

size_t count_paths(const uint8_t *paths, size_t paths_length) {
  struct path_list list;
  const char *path;
  size_t length, count = 0;
  path_list_init(&list, paths, paths_length);
  while (path_list_next(&list, &path, &length)) count++;
  return count;
}

static napi_value make_result(napi_env env, size_t done, const struct meta *metas) {
  napi_value result, meta = make_buffer_copy(env, metas, done * sizeof *metas);
  if (meta == NULL || napi_create_object(env, &result) != napi_ok || !set_number(env, result, "done", (double)done) ||
      napi_set_named_property(env, result, "meta", meta) != napi_ok) {
    return NULL;
  }
  return result;
}

napi_value addon_read_entries(napi_env env, napi_callback_info info) {
  napi_value arguments[5];
  struct bytes_view paths, out;
  struct reader reader;
  uint64_t max_content;
  uint32_t retries;
  int root;
  if (!get_arguments(env, info, 5, arguments) || !get_int(env, arguments[0], &root) ||
      !get_buffer(env, arguments[1], &paths) || !get_buffer(env, arguments[2], &out) ||
      !get_size(env, arguments[3], &max_content) || !get_u32(env, arguments[4], &retries)) {
    return NULL;
  }
  size_t count = count_paths(paths.data, paths.length), done = 0;
  struct meta *metas = malloc(count * sizeof *metas);
  if (metas == NULL || !reader_init(&reader, root, max_content, retries)) {
    free(metas);
    throw_errno(env, ENOMEM, "malloc", NULL, 0);
    return NULL;
  }
  reader.out = out.data;
  reader.size = out.length > UINT32_MAX ? UINT32_MAX : out.length; // offsets have 32 bits
  struct path_list list;
  const char *path;
  size_t length;
  path_list_init(&list, paths.data, paths.length);
  while (path_list_next(&list, &path, &length)) {
    if (reader_read(&reader, path, length, &metas[done]) == READ_FULL) break;
    done++;
  }
  reader_free(&reader);
  napi_value result = make_result(env, done, metas);
  free(metas);
  return result;
}
