/*
 * What is said when a signal comes while JavaScript waits for a program, and can neither answer nor print. It is written once, and
 * whoever had the signal before has it as ever.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "addon.h"
#include "napi-util.h"

enum { TEXT_BYTES = 512 };

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
static struct sigaction before[sizeof signals / sizeof *signals];
static bool is_taken[sizeof signals / sizeof *signals];
static char text[TEXT_BYTES];
/* 0: said, or nothing to say. */
static atomic_size_t text_length;

static void note(int number, siginfo_t *info, void *context) {
  int error = errno;
  size_t length = atomic_exchange(&text_length, 0);
  if (length > 0 && write(STDERR_FILENO, text, length) < 0) {
    // Nobody reads it.
  }
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
    if (signals[i] != number) continue;
    if ((before[i].sa_flags & SA_SIGINFO) != 0) before[i].sa_sigaction(number, info, context);
    else before[i].sa_handler(number);
  }
  errno = error;
}

static void give_back(void) {
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
    if (is_taken[i]) sigaction(signals[i], &before[i], NULL);
    is_taken[i] = false;
  }
  atomic_store(&text_length, 0);
}

/* (text): no bytes end it. A signal that nobody handles has its effect at once, and needs no words. */
napi_value addon_signal_note(napi_env env, napi_callback_info info) {
  napi_value arguments[1];
  struct bytes_view given;
  if (!get_arguments(env, info, 1, arguments) || !get_buffer(env, arguments[0], &given)) return NULL;
  give_back();
  if (given.length == 0 || given.length > sizeof text) return make_undefined(env);
  memcpy(text, given.data, given.length);
  atomic_store(&text_length, given.length);
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
    struct sigaction action;
    if (sigaction(signals[i], NULL, &before[i]) != 0) continue;
    bool is_default = (before[i].sa_flags & SA_SIGINFO) == 0 &&
                      (before[i].sa_handler == SIG_DFL || before[i].sa_handler == SIG_IGN);
    if (is_default) continue;
    action = before[i];
    action.sa_sigaction = note;
    action.sa_flags |= SA_SIGINFO;
    is_taken[i] = sigaction(signals[i], &action, NULL) == 0;
  }
  return make_undefined(env);
}
