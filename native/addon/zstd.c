#define _GNU_SOURCE
#include "zstd.h"

#include <dlfcn.h>
#include <pthread.h>

/* The stable part of zstd.h, which has not changed since 1.4. */
static struct {
  struct zstd *(*create)(void);
  size_t (*release)(struct zstd *);
  size_t (*set)(struct zstd *, int, int);
  size_t (*bound)(size_t);
  size_t (*compress)(struct zstd *, void *, size_t, const void *, size_t);
  unsigned (*failed)(size_t);
  bool found;
} library;
static pthread_once_t library_once = PTHREAD_ONCE_INIT;

/* ISO C knows no way from void * to a function; POSIX promises this one. */
static bool find(const char *name, void *function) {
  return (*(void **)function = dlsym(RTLD_DEFAULT, name)) != NULL;
}

static void find_library(void) {
  library.found = find("ZSTD_createCCtx", &library.create) && find("ZSTD_freeCCtx", &library.release) &&
                  find("ZSTD_CCtx_setParameter", &library.set) && find("ZSTD_compressBound", &library.bound) &&
                  find("ZSTD_compress2", &library.compress) && find("ZSTD_isError", &library.failed);
}

struct zstd *zstd_new(const struct zstd_parameter *parameters, size_t count) {
  pthread_once(&library_once, find_library);
  struct zstd *context = library.found ? library.create() : NULL;
  if (context == NULL) return NULL;
  for (size_t i = 0; i < count; i++) {
    if (library.failed(library.set(context, parameters[i].name, parameters[i].value))) {
      library.release(context);
      return NULL;
    }
  }
  return context;
}

void zstd_free(struct zstd *context) {
  if (context != NULL) library.release(context);
}

size_t zstd_bound(size_t bytes) { return library.bound(bytes); }

size_t zstd_compress(struct zstd *context, uint8_t *out, size_t room, const uint8_t *bytes, size_t length) {
  size_t result = library.compress(context, out, room, bytes, length);
  return library.failed(result) ? 0 : result;
}
