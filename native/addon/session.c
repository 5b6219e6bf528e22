/* Who is at the other end of a socket, pipes, signals for a process that is known, and how the terminal is set. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include "addon.h"
#include "napi-util.h"

napi_value addon_peer_of(napi_env env, napi_callback_info info) {
  napi_value arguments[1], result;
  int fd;
  if (!get_arguments(env, info, 1, arguments) || !get_int(env, arguments[0], &fd)) return NULL;
  struct ucred peer;
  socklen_t length = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) {
    throw_errno(env, errno, "getsockopt", NULL, 0);
    return NULL;
  }
  if (napi_create_object(env, &result) != napi_ok || !set_number(env, result, "pid", peer.pid) ||
      !set_number(env, result, "uid", peer.uid)) {
    return NULL;
  }
  return result;
}

napi_value addon_make_pipe(napi_env env, napi_callback_info info) {
  (void)info;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw_errno(env, errno, "pipe2", NULL, 0);
    return NULL;
  }
  napi_value result;
  if (napi_create_object(env, &result) != napi_ok || !set_number(env, result, "read", ends[0]) ||
      !set_number(env, result, "write", ends[1])) {
    close(ends[0]);
    close(ends[1]);
    return NULL;
  }
  return result;
}

napi_value addon_pidfd_open_process(napi_env env, napi_callback_info info) {
  napi_value arguments[1];
  int pid;
  if (!get_arguments(env, info, 1, arguments) || !get_int(env, arguments[0], &pid)) return NULL;
  // Close-on-exec by itself.
  long fd = syscall(SYS_pidfd_open, pid, 0);
  if (fd >= 0) return make_number(env, (double)fd);
  throw_errno(env, errno, "pidfd_open", NULL, 0);
  return NULL;
}

napi_value addon_pidfd_signal(napi_env env, napi_callback_info info) {
  napi_value arguments[2];
  int fd, number;
  if (!get_arguments(env, info, 2, arguments) || !get_int(env, arguments[0], &fd) ||
      !get_int(env, arguments[1], &number)) {
    return NULL;
  }
  if (syscall(SYS_pidfd_send_signal, fd, number, NULL, 0) == 0) return make_undefined(env);
  throw_errno(env, errno, "pidfd_send_signal", NULL, 0);
  return NULL;
}

napi_value addon_terminal_modes(napi_env env, napi_callback_info info) {
  napi_value arguments[1];
  int fd;
  if (!get_arguments(env, info, 1, arguments) || !get_int(env, arguments[0], &fd)) return NULL;
  struct termios modes;
  memset(&modes, 0, sizeof modes);
  if (tcgetattr(fd, &modes) != 0) return make_undefined(env);
  return make_buffer_copy(env, &modes, sizeof modes);
}

napi_value addon_set_terminal_modes(napi_env env, napi_callback_info info) {
  napi_value arguments[2];
  int fd;
  struct bytes_view bytes;
  if (!get_arguments(env, info, 2, arguments) || !get_int(env, arguments[0], &fd) ||
      !get_buffer(env, arguments[1], &bytes)) {
    return NULL;
  }
  struct termios modes;
  if (bytes.length != sizeof modes) {
    throw_errno(env, EINVAL, "tcsetattr", NULL, 0);
    return NULL;
  }
  memcpy(&modes, bytes.data, sizeof modes);
  // From the background this would stop us (SIGTTOU).
  bool is_ours = tcgetpgrp(fd) == getpgrp();
  int error = is_ours && tcsetattr(fd, TCSANOW, &modes) != 0 ? errno : 0;
  if (error != 0 && error != ENOTTY && error != EIO) {
    throw_errno(env, error, "tcsetattr", NULL, 0);
    return NULL;
  }
  napi_value result;
  return napi_get_boolean(env, is_ours && error == 0, &result) == napi_ok ? result : NULL;
}

/* What a process of our job does with the terminal from the background stops all of the job, by these two. */
napi_value addon_ignore_terminal_stops(napi_env env, napi_callback_info info) {
  static const int numbers[] = {SIGTTIN, SIGTTOU};
  static struct sigaction before[2];
  static bool ignores;
  napi_value arguments[1];
  bool wanted;
  if (!get_arguments(env, info, 1, arguments) || !get_bool(env, arguments[0], &wanted)) return NULL;
  struct sigaction ignored;
  memset(&ignored, 0, sizeof ignored);
  ignored.sa_handler = SIG_IGN;
  for (int i = 0; i < 2 && wanted != ignores; i++) {
    if (wanted) sigaction(numbers[i], &ignored, &before[i]);
    else sigaction(numbers[i], &before[i], NULL);
  }
  ignores = wanted;
  return make_undefined(env);
}
