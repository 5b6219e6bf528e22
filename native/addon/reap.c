/* Children that became ours because their parent died. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "addon.h"
#include "napi-util.h"

napi_value addon_adopt_orphans(napi_env env, napi_callback_info info) {
  napi_value arguments[1];
  bool adopts;
  if (!get_arguments(env, info, 1, arguments) || !get_bool(env, arguments[0], &adopts)) return NULL;
  if (prctl(PR_SET_CHILD_SUBREAPER, adopts, 0, 0, 0) == 0) return make_undefined(env);
  throw_errno(env, errno, "prctl", NULL, 0);
  return NULL;
}

napi_value addon_take_end(napi_env env, napi_callback_info info) {
  napi_value arguments[1];
  int pid, status;
  if (!get_arguments(env, info, 1, arguments) || !get_int(env, arguments[0], &pid)) return NULL;
  // 0 and below would mean any child, and take the ends of Node's own.
  pid_t ended = pid <= 0 ? (errno = ECHILD, -1) : waitpid(pid, &status, WNOHANG);
  if (ended == 0) return make_undefined(env);
  if (ended > 0) return make_number(env, status);
  throw_errno(env, errno, "waitpid", NULL, 0);
  return NULL;
}
