/* scanDirs for JavaScript: lists directories on a thread of libuv. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "addon.h"
#include "listing.h"
#include "napi-util.h"
#include "resolve.h"

struct scan {
  napi_async_work work;
  napi_deferred deferred;
  int root; /* our own duplicate: JavaScript may close its descriptor while we run */
  int error;
  uint8_t *paths;
  size_t paths_length;
  napi_ref known_ref, spans_ref; /* keep what the two views of the listing show while we run */
  struct listing listing;
};

static void execute(napi_env env, void *data) {
  (void)env;
  struct scan *scan = data;
  struct resolver resolver;
  resolver_init(&resolver, scan->root);
  if (!listing_begin(&scan->listing)) scan->error = ENOMEM;
  struct path_list list;
  const char *path;
  size_t length;
  path_list_init(&list, scan->paths, scan->paths_length);
  for (size_t i = 0; scan->error == 0 && path_list_next(&list, &path, &length); i++) {
    scan->error = listing_add(&scan->listing, &resolver, i, path, length);
  }
  resolver_close(&resolver);
  listing_end(&scan->listing);
  if (scan->error == 0 && scan->listing.length > 0) {
    void *trimmed = realloc(scan->listing.out, scan->listing.length);
    if (trimmed != NULL) scan->listing.out = trimmed;
  }
}

static void free_scan(napi_env env, struct scan *scan) {
  if (scan->work != NULL) napi_delete_async_work(env, scan->work);
  if (scan->known_ref != NULL) napi_delete_reference(env, scan->known_ref);
  if (scan->spans_ref != NULL) napi_delete_reference(env, scan->spans_ref);
  if (scan->root >= 0) close(scan->root);
  free(scan->paths);
  free(scan->listing.out);
  free(scan);
}

static void complete(napi_env env, napi_status status, void *data) {
  struct scan *scan = data;
  int error = status == napi_cancelled ? ECANCELED : scan->error;
  napi_value value = NULL;
  if (error != 0) {
    value = make_errno_error(env, error, "scandir", NULL, 0);
    if (value != NULL) napi_reject_deferred(env, scan->deferred, value);
  } else {
    value = make_buffer_owning(env, scan->listing.out, scan->listing.length);
    scan->listing.out = NULL;
    if (value != NULL) napi_resolve_deferred(env, scan->deferred, value);
  }
  free_scan(env, scan);
}

napi_value addon_scan_dirs(napi_env env, napi_callback_info info) {
  napi_value arguments[4];
  struct bytes_view paths, known = {0}, spans = {0};
  int root;
  size_t given = 4;
  if (!get_arguments(env, info, 2, arguments) || napi_get_cb_info(env, info, &given, arguments, NULL, NULL) != napi_ok ||
      !get_int(env, arguments[0], &root) || !get_buffer(env, arguments[1], &paths)) {
    return NULL;
  }
  bool knows = given == 4;
  if (knows && (!get_buffer(env, arguments[2], &known) || !get_buffer(env, arguments[3], &spans))) return NULL;
  struct scan *scan = calloc(1, sizeof *scan);
  uint8_t *copy = malloc(paths.length + 1);
  int own_root = root < 0 ? (errno = EBADF, -1) : fcntl(root, F_DUPFD_CLOEXEC, 3);
  int error = scan == NULL || copy == NULL ? ENOMEM : own_root < 0 ? errno : 0;
  if (error != 0) {
    if (own_root >= 0) close(own_root);
    free(copy);
    free(scan);
    throw_errno(env, error, "dup", NULL, 0);
    return NULL;
  }
  if (paths.length > 0) memcpy(copy, paths.data, paths.length);
  scan->root = own_root;
  scan->paths = copy;
  scan->paths_length = paths.length;
  scan->listing = (struct listing){.known = known, .spans = spans};
  napi_value promise, name;
  if ((knows && napi_create_reference(env, arguments[2], 1, &scan->known_ref) != napi_ok) ||
      (knows && napi_create_reference(env, arguments[3], 1, &scan->spans_ref) != napi_ok) ||
      napi_create_string_latin1(env, "savepoint.scanDirs", NAPI_AUTO_LENGTH, &name) != napi_ok ||
      napi_create_async_work(env, NULL, name, execute, complete, scan, &scan->work) != napi_ok ||
      napi_create_promise(env, &scan->deferred, &promise) != napi_ok ||
      napi_queue_async_work(env, scan->work) != napi_ok) {
    free_scan(env, scan);
    napi_throw_error(env, NULL, "cannot queue scanDirs");
    return NULL;
  }
  return promise;
}
