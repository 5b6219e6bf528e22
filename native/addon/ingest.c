/* The pipeline for JavaScript: ingestNew, ingestRead, ingestWindow, ingestStore, ingestFlush, ingestClose. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "addon.h"
#include "hash.h"
#include "napi-util.h"
#include "pipeline.h"

/* Lives as long as JavaScript holds it or an event may still be on its way. All but `report` is the main thread's. */
struct ingest {
  struct pipeline pipeline;
  napi_threadsafe_function deliver; /* NULL when closed */
  int owners;
  bool hooked;
};

static const uint32_t max_block_bytes = 64 * 1024 * 1024;

/* EVENT in addon.ts. */
static bool event_values(napi_env env, struct event *event, napi_value values[5]) {
  const struct job *job = event->job;
  int error = job != NULL ? job->error : event->error;
  bool read = job != NULL && error == 0;
  uint8_t *block = event->block;
  event->block = NULL;
  values[0] = make_number(env, event->kind);
  values[1] = make_number(env, job != NULL ? job->batch : 0);
  values[2] = make_number(env, error);
  values[3] = block != NULL ? make_buffer_owning(env, block, event->block_length)
                            : make_buffer_copy(env, read ? job->metas : NULL, read ? job->count * sizeof *job->metas : 0);
  values[4] = make_buffer_copy(env, read ? job->extra : NULL, read ? job->extra_length : 0);
  for (int i = 0; i < 5; i++) {
    if (values[i] == NULL) return false;
  }
  return true;
}

/* On the thread of JavaScript. What comes after the end speaks of jobs that are gone. */
static void deliver(napi_env env, napi_value callback, void *context, void *data) {
  struct ingest *ingest = context;
  struct event *event = data;
  napi_value values[5], undefined;
  if (env != NULL && callback != NULL && !ingest->pipeline.stopping && event_values(env, event, values) &&
      napi_get_undefined(env, &undefined) == napi_ok) {
    napi_call_function(env, undefined, callback, 5, values, NULL);
  }
  event_free(event);
}

static void report(void *context, struct event *event) {
  struct ingest *ingest = context;
  if (napi_call_threadsafe_function(ingest->deliver, event, napi_tsfn_nonblocking) != napi_ok) event_free(event);
}

static void stop(void *data) {
  struct ingest *ingest = data;
  if (ingest->deliver == NULL) return;
  pipeline_stop(&ingest->pipeline);
  napi_release_threadsafe_function(ingest->deliver, napi_tsfn_abort);
  ingest->deliver = NULL;
}

/* When the process or its worker thread ends in the middle: afterwards there is nothing to report to. */
static void stop_at_exit(void *data) {
  struct ingest *ingest = data;
  ingest->hooked = false;
  stop(ingest);
}

static void disown(struct ingest *ingest) {
  if (--ingest->owners > 0) return;
  pthread_mutex_destroy(&ingest->pipeline.mutex);
  pthread_cond_destroy(&ingest->pipeline.work);
  free(ingest);
}

static void forget_deliver(napi_env env, void *data, void *hint) {
  (void)env;
  (void)hint;
  disown(data);
}

static void close_ingest(napi_env env, struct ingest *ingest) {
  if (ingest->hooked) napi_remove_env_cleanup_hook(env, stop_at_exit, ingest);
  ingest->hooked = false;
  stop(ingest);
}

static void finalize(napi_env env, void *data, void *hint) {
  (void)hint;
  close_ingest(env, data);
  disown(data);
}

/* --- arguments --- */

static bool get_property(napi_env env, napi_value object, const char *name, double *out) {
  napi_value value;
  if (napi_get_named_property(env, object, name, &value) == napi_ok && napi_get_value_double(env, value, out) == napi_ok) {
    return true;
  }
  napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE", "expected an object with threads, blockBytes, nice and worthwhile");
  return false;
}

static bool get_settings(napi_env env, napi_value *arguments, struct pipeline_settings *out) {
  double threads, block_bytes, nice;
  struct bytes_view parameters;
  if (!get_property(env, arguments[0], "threads", &threads) ||
      !get_property(env, arguments[0], "blockBytes", &block_bytes) ||
      !get_property(env, arguments[0], "nice", &nice) ||
      !get_property(env, arguments[0], "worthwhile", &out->worthwhile) || !get_buffer(env, arguments[1], &parameters)) {
    return false;
  }
  out->parameter_count = parameters.length / sizeof *out->parameters;
  if (!(threads >= 1 && threads <= MAX_THREADS && block_bytes >= 1 && block_bytes <= max_block_bytes &&
        nice >= 0 && nice <= MAX_NICE) ||
      parameters.length % sizeof *out->parameters != 0 || out->parameter_count > MAX_PARAMETERS) {
    throw_errno(env, EINVAL, "ingest", NULL, 0);
    return false;
  }
  out->threads = (uint32_t)threads;
  out->block_bytes = (uint32_t)block_bytes;
  out->nice = (uint32_t)nice;
  if (parameters.length > 0) memcpy(out->parameters, parameters.data, parameters.length);
  return true;
}

static struct ingest *get_ingest(napi_env env, napi_value value) {
  napi_valuetype type;
  void *ingest;
  if (napi_typeof(env, value, &type) != napi_ok || type != napi_external ||
      napi_get_value_external(env, value, &ingest) != napi_ok) {
    napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE", "expected what ingestNew returned");
    return NULL;
  }
  return ingest;
}

static struct ingest *get_open_ingest(napi_env env, napi_value value) {
  struct ingest *ingest = get_ingest(env, value);
  if (ingest == NULL || ingest->deliver != NULL) return ingest;
  throw_errno(env, EBADF, "ingest", NULL, 0);
  return NULL;
}

/* --- functions --- */

napi_value addon_ingest_new(napi_env env, napi_callback_info info) {
  napi_value arguments[3], name, value;
  struct ingest *ingest = calloc(1, sizeof *ingest);
  if (ingest == NULL) {
    throw_errno(env, ENOMEM, "malloc", NULL, 0);
    return NULL;
  }
  if (!get_arguments(env, info, 3, arguments) || !get_settings(env, arguments, &ingest->pipeline.settings)) {
    free(ingest);
    return NULL;
  }
  ingest->pipeline.report = report;
  ingest->pipeline.context = ingest;
  if (napi_create_string_latin1(env, "savepoint.ingest", NAPI_AUTO_LENGTH, &name) != napi_ok ||
      napi_create_threadsafe_function(env, arguments[2], NULL, name, 0, 1, ingest, forget_deliver, ingest, deliver,
                                      &ingest->deliver) != napi_ok) {
    free(ingest);
    napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE", "expected a function");
    return NULL;
  }
  ingest->owners = 1;
  int error = pipeline_start(&ingest->pipeline);
  if (error != 0) {
    stop(ingest);
    throw_errno(env, error, "ingest", NULL, 0);
    return NULL;
  }
  ingest->hooked = napi_add_env_cleanup_hook(env, stop_at_exit, ingest) == napi_ok;
  if (napi_create_external(env, ingest, finalize, NULL, &value) != napi_ok) {
    close_ingest(env, ingest);
    return NULL;
  }
  ingest->owners++;
  return value;
}

static napi_value queue(napi_env env, struct ingest *ingest, struct job *job) {
  pipeline_read(&ingest->pipeline, job);
  return make_undefined(env);
}

napi_value addon_ingest_read(napi_env env, napi_callback_info info) {
  napi_value arguments[7];
  struct bytes_view paths;
  struct job request = {0};
  struct ingest *ingest;
  uint64_t room;
  if (!get_arguments(env, info, 7, arguments) || (ingest = get_open_ingest(env, arguments[0])) == NULL ||
      !get_u32(env, arguments[1], &request.batch) || !get_int(env, arguments[2], &request.fd) ||
      !get_buffer(env, arguments[3], &paths) || !get_size(env, arguments[4], &room) ||
      !get_size(env, arguments[5], &request.max_content) || !get_u32(env, arguments[6], &request.retries)) {
    return NULL;
  }
  struct job *job = malloc(sizeof *job);
  request.paths = malloc(paths.length + 1);
  if (job == NULL || request.paths == NULL || request.max_content > UINT32_MAX / 4) {
    throw_errno(env, job == NULL || request.paths == NULL ? ENOMEM : EINVAL, "ingest", NULL, 0);
    free(request.paths);
    free(job);
    return NULL;
  }
  if (paths.length > 0) memcpy(request.paths, paths.data, paths.length);
  request.paths_length = paths.length;
  request.room = (size_t)room;
  *job = request;
  return queue(env, ingest, job);
}

napi_value addon_ingest_window(napi_env env, napi_callback_info info) {
  napi_value arguments[8];
  struct bytes_view hash, limits;
  struct job request = {0};
  struct ingest *ingest;
  uint64_t room;
  uint32_t lengths[3] = {0};
  if (!get_arguments(env, info, 8, arguments) || (ingest = get_open_ingest(env, arguments[0])) == NULL ||
      !get_u32(env, arguments[1], &request.batch) || !get_int(env, arguments[2], &request.fd) ||
      !get_size(env, arguments[3], &request.position) || !get_size(env, arguments[4], &room) ||
      !get_bool(env, arguments[5], &request.last) || !get_hash_state(env, arguments[6], &hash, &request.hash) ||
      !get_buffer(env, arguments[7], &limits)) {
    return NULL;
  }
  bool cuts = limits.length == sizeof lengths;
  if (cuts) memcpy(lengths, limits.data, sizeof lengths);
  if (room == 0 || room > UINT32_MAX || !(cuts || limits.length == 0) ||
      (cuts && !chunk_limits_hold(lengths[0], lengths[1], lengths[2]))) {
    throw_errno(env, EINVAL, "ingest", NULL, 0);
    return NULL;
  }
  struct job *job = malloc(sizeof *job);
  if (job == NULL) {
    throw_errno(env, ENOMEM, "malloc", NULL, 0);
    return NULL;
  }
  request.limits = (struct chunk_limits){.minimum = lengths[0], .average = lengths[1], .maximum = lengths[2]};
  request.room = (size_t)room;
  *job = request;
  return queue(env, ingest, job);
}

napi_value addon_ingest_store(napi_env env, napi_callback_info info) {
  napi_value arguments[3];
  struct bytes_view wanted;
  struct ingest *ingest;
  uint32_t batch;
  if (!get_arguments(env, info, 3, arguments) || (ingest = get_open_ingest(env, arguments[0])) == NULL ||
      !get_u32(env, arguments[1], &batch) || !get_buffer(env, arguments[2], &wanted)) {
    return NULL;
  }
  int error = pipeline_store(&ingest->pipeline, batch, wanted.data, wanted.length);
  if (error == 0) return make_undefined(env);
  throw_errno(env, error, "ingest", NULL, 0);
  return NULL;
}

napi_value addon_ingest_flush(napi_env env, napi_callback_info info) {
  napi_value arguments[1];
  struct ingest *ingest;
  if (!get_arguments(env, info, 1, arguments) || (ingest = get_open_ingest(env, arguments[0])) == NULL) return NULL;
  pipeline_flush(&ingest->pipeline);
  return make_undefined(env);
}

napi_value addon_ingest_close(napi_env env, napi_callback_info info) {
  napi_value arguments[1];
  struct ingest *ingest;
  if (!get_arguments(env, info, 1, arguments) || (ingest = get_ingest(env, arguments[0])) == NULL) return NULL;
  close_ingest(env, ingest);
  return make_undefined(env);
}
