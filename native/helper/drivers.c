/* The table of drivers. See drivers.h. */
#include "drivers.h"

#include <stddef.h>
#include <string.h>

static const struct driver *const drivers[] = {&seccomp_driver, &ptrace_driver, &ebpf_driver, &none_driver};

const struct driver *driver_named(const char *name) {
  for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++) {
    if (strcmp(drivers[i]->name, name) == 0) return drivers[i];
  }
  return NULL;
}
