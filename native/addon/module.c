/* Registration. Context-aware: every worker thread gets its own exports, and the addon keeps no state per thread. */
#include "addon.h"

#include <malloc.h>

#define X(js_name, c_name) {#js_name, NULL, addon_##c_name, NULL, NULL, NULL, napi_enumerable, NULL},
static const napi_property_descriptor functions[] = {ADDON_FUNCTIONS(X)};
#undef X

NAPI_MODULE_INIT(/* napi_env env, napi_value exports */) {
  // Blocks and windows of some hundred kilobytes come and go on several threads; without these limits the allocator
  // keeps twice as much memory as is in use. Setting them again in another thread changes nothing.
  mallopt(M_ARENA_MAX, 2);
  mallopt(M_MMAP_THRESHOLD, 4 * 1024 * 1024);
  mallopt(M_TRIM_THRESHOLD, 4 * 1024 * 1024);
  if (napi_define_properties(env, exports, sizeof functions / sizeof *functions, functions) != napi_ok) return NULL;
  return exports;
}
