/* Memory that this process has freed, and its allocator keeps. */
#include <malloc.h>

#include "addon.h"
#include "napi-util.h"

napi_value addon_trim_memory(napi_env env, napi_callback_info info) {
  (void)info;
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  return make_undefined(env);
}
