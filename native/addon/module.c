/* Registration. Context-aware: every worker thread gets its own exports, and the addon keeps no state per thread. */
#include "addon.h"

#define X(js_name, c_name) {#js_name, NULL, addon_##c_name, NULL, NULL, NULL, napi_enumerable, NULL},
static const napi_property_descriptor functions[] = {ADDON_FUNCTIONS(X)};
#undef X

NAPI_MODULE_INIT(/* napi_env env, napi_value exports */) {
  if (napi_define_properties(env, exports, sizeof functions / sizeof *functions, functions) != napi_ok) return NULL;
  return exports;
}
