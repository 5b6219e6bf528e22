/* By /proc/PID/environ. See odd-names.h. */
#define _GNU_SOURCE
#include "odd-names.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An argument has room for 128 KiB; what is beyond that is not taken over. */
enum { ROOM = 60 * 1024 };

static bool is_identifier(const char *variable) {
  const char *at = variable;
  if (isdigit((unsigned char)*at)) return false;
  while (isalnum((unsigned char)*at) || *at == '_') at++;
  return at > variable && *at == '=';
}

static size_t print(const char *variable, size_t room) {
  size_t length = strlen(variable) + 1;
  if (length > room || is_identifier(variable) || strchr(variable, '=') == NULL) return 0;
  for (size_t i = 0; i < length; i++) printf("%02x", (unsigned char)variable[i]);
  return length;
}

static FILE *open_environment(const char *pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%s/environ", pid);
  return fopen(path, "re");
}

int odd_names_print(const char *pid) {
  FILE *file = open_environment(pid);
  char *variable = NULL;
  size_t room = 0, printed = 0;
  while (file != NULL && getdelim(&variable, &room, 0, file) > 0) printed += print(variable, ROOM - printed);
  return 0;
}

static int digit(char letter) { return letter <= '9' ? letter - '0' : letter - 'a' + 10; }

void odd_names_take(const char *text) {
  static char variables[ROOM];
  size_t length = 0;
  for (; text[0] != 0 && text[1] != 0 && length < ROOM - 1; text += 2) variables[length++] = (char)(digit(text[0]) << 4 | digit(text[1]));
  for (size_t at = 0; at < length; at += strlen(variables + at) + 1) putenv(variables + at);
}

/* What text has in the place of bytes that are none. */
static const char REPLACED[] = "\xEF\xBF\xBD";

static bool is_any_replaced(void) {
  for (char **at = environ; *at != NULL; at++) {
    if (strstr(*at, REPLACED) != NULL) return true;
  }
  return false;
}

void odd_values_take(const char *pid) {
  FILE *file = is_any_replaced() ? open_environment(pid) : NULL;
  if (file == NULL) return;
  char *variable = NULL;
  size_t room = 0;
  while (getdelim(&variable, &room, 0, file) > 0) {
    char *value = strchr(variable, '=');
    if (value == NULL) continue;
    *value++ = 0;
    const char *ours = getenv(variable);
    if (ours != NULL && strstr(ours, REPLACED) != NULL) setenv(variable, value, 1);
  }
  free(variable);
  fclose(file);
}
