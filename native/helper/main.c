/*
 * savepoint-helper: starts a command and tells what it executes and changes, as frames on a socket (frames.h). The command
 * keeps the terminal; the helper leaves it, and the death of whoever reads the frames does not touch the command.
 *
 *   savepoint-helper --events FD --driver NAME [--exits pidfd|ptrace] [--allow-io-uring] [--hold NAME,… --hold-ms N]
 *                    [--protect DIRECTORY]… [--spool DIRECTORY [--hold-changes]] [--ignore SIGNAL,…] [--file-limit N] [--watch PATH [--watch-ignore PATH]…] -- COMMAND…
 *   savepoint-helper --events FD --driver seccomp --spool DIRECTORY --record all|changes [--record-ignore PATH]… -- COMMAND…      see record.h
 *   savepoint-helper --events FD --driver ebpf --cgroup DIRECTORY      starts nothing; ends when the reader does, or by SIGTERM
 *   savepoint-helper --driver NAME --probe      exits with 0 when the driver works here; prints what it cannot, or why not
 *   savepoint-helper --odd-names PID            prints variables that a shell drops: see odd-names.h
 *   savepoint-helper --inherit ODD -- PROGRAM…  becomes the program, with these: see inherit.h
 *   savepoint-helper --thaw      continues those whose numbers come in, when whoever tells them is gone: see thaw.h
 *
 * Drivers: drivers.h. `--exits` is for tests: how the seccomp driver learns of ends, which is chosen by what the kernel can;
 * `--ring-bytes` too: of the ebpf driver.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exits.h"
#include "holds.h"
#include "inherit.h"
#include "launch.h"
#include "odd-names.h"
#include "protect.h"
#include "record.h"
#include "supervise.h"
#include "thaw.h"

struct options {
  struct supervision supervision;
  struct driver_options driver;
  const char *exits, *ignored;
  unsigned file_limit;
  bool io_uring, probe;
  char **command;
};

/* `%xx` is a byte: whoever starts us can hand over text only, and a path may be none. In place. */
static char *decoded(char *text) {
  char *to = text;
  for (const char *from = text; *from != 0; to++) {
    unsigned byte = 0;
    bool is_byte = from[0] == '%' && sscanf(from + 1, "%2x", &byte) == 1;
    *to = is_byte ? (char)byte : *from;
    from += is_byte ? 3 : 1;
  }
  *to = 0;
  return text;
}

static bool parse(int count, char **arguments, struct options *options) {
  const char **ignored = calloc((size_t)count, sizeof *ignored);
  if (ignored == NULL) return false;
  *options = (struct options){.supervision = {.events = -1, .watching = {.ignored = ignored}}};
  size_t *ignored_count = &options->supervision.watching.ignored_count;
  for (int i = 1; i < count; i++) {
    const char *argument = arguments[i];
    if (strcmp(argument, "--") == 0) {
      options->command = arguments + i + 1;
      return options->supervision.events >= 0 && options->supervision.driver != NULL && options->command[0] != NULL;
    }
    if (strcmp(argument, "--probe") == 0) options->probe = true;
    else if (strcmp(argument, "--allow-io-uring") == 0) options->io_uring = true;
    else if (strcmp(argument, "--events") == 0 && i + 1 < count) options->supervision.events = atoi(arguments[++i]);
    else if (strcmp(argument, "--hold") == 0 && i + 1 < count) options->supervision.hold = arguments[++i];
    else if (strcmp(argument, "--hold-ms") == 0 && i + 1 < count) options->supervision.hold_ms = (unsigned)atoi(arguments[++i]);
    else if (strcmp(argument, "--hold-changes") == 0) holds_start_changes();
    else if (strcmp(argument, "--watch") == 0 && i + 1 < count) options->supervision.watching.path = decoded(arguments[++i]);
    else if (strcmp(argument, "--watch-ignore") == 0 && i + 1 < count) ignored[(*ignored_count)++] = decoded(arguments[++i]);
    else if (strcmp(argument, "--spool") == 0 && i + 1 < count) options->supervision.spool = arguments[++i];
    else if (strcmp(argument, "--record") == 0 && i + 1 < count) record_start(strcmp(arguments[++i], "all") == 0);
    else if (strcmp(argument, "--record-ignore") == 0 && i + 1 < count) record_ignore(decoded(arguments[++i]));
    else if (strcmp(argument, "--driver") == 0 && i + 1 < count) options->supervision.driver = driver_named(arguments[++i]);
    else if (strcmp(argument, "--cgroup") == 0 && i + 1 < count) options->driver.cgroup = arguments[++i];
    else if (strcmp(argument, "--ring-bytes") == 0 && i + 1 < count) options->driver.ring_bytes = (uint32_t)atoi(arguments[++i]);
    else if (strcmp(argument, "--protect") == 0 && i + 1 < count && protect_add(arguments[i + 1])) i++;
    else if (strcmp(argument, "--ignore") == 0 && i + 1 < count) options->ignored = arguments[++i];
    else if (strcmp(argument, "--file-limit") == 0 && i + 1 < count) options->file_limit = (unsigned)atoi(arguments[++i]);
    else if (strcmp(argument, "--exits") == 0 && i + 1 < count) options->exits = arguments[++i];
    else return false;
  }
  if (options->supervision.driver == NULL) return false;
  return options->probe || (options->driver.cgroup != NULL && options->supervision.driver == &ebpf_driver && options->supervision.events >= 0);
}

/*
 * What is in our command line must not be found there by whoever looks for the programs that it names (`pkill -f git`): the
 * arguments are copied, and their memory is cleared.
 */
static char **hide(int count, char **arguments) {
  char **copies = calloc((size_t)count + 1, sizeof *copies);
  if (copies == NULL) return arguments;
  for (int i = 0; i < count; i++) copies[i] = strdup(arguments[i]);
  for (int i = 1; i < count && copies[i] != NULL; i++) memset(arguments[i], 0, strlen(arguments[i]));
  return copies;
}

int main(int count, char **arguments) {
  if (count == 3 && strcmp(arguments[1], "--odd-names") == 0) return odd_names_print(arguments[2]);
  if (count > 4 && strcmp(arguments[1], "--inherit") == 0 && strcmp(arguments[3], "--") == 0) {
    odd_names_take(arguments[2]);
    return inherit(arguments + 4);
  }
  if (count == 2 && strcmp(arguments[1], "--thaw") == 0) thaw_stand_by(STDIN_FILENO);
  arguments = hide(count, arguments);
  struct options options;
  if (!parse(count, arguments, &options)) {
    fprintf(stderr, "usage: savepoint-helper --driver NAME --events FD [--allow-io-uring] [--hold NAMES --hold-ms N] [--protect DIRECTORY]... -- COMMAND...\n");
    return 125;
  }
  if (options.probe) return options.supervision.driver->probe();
  if (options.supervision.driver->filters)
    options.supervision.exits_by_ptrace = options.exits == NULL ? !exits_are_known() : strcmp(options.exits, "ptrace") == 0;
  fcntl(options.supervision.events, F_SETFD, FD_CLOEXEC);
  note_inherited(options.supervision.events);
  char parent[16];
  snprintf(parent, sizeof parent, "%d", (int)getppid());
  odd_values_take(parent);
  struct launch start = {.command = options.command, .ignored = options.ignored, .file_limit = options.file_limit, .filters = options.supervision.driver->filters, .io_uring = options.io_uring, .looks = record_is_looking()};
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &start.signals);
  /* Whatever leaves its parents becomes our child, and its end is noticed. */
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  struct launched launched = {.listener = -1, .go = -1, .failure = -1};
  const struct driver *driver = options.supervision.driver;
  int error = driver->prepare == NULL ? 0 : driver->prepare(&options.driver);
  if (error == 0 && options.command != NULL) error = launch(&start, &launched);
  return supervise(&options.supervision, &launched, error);
}
