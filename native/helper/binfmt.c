/* Reads the rules as the system shows them. See binfmt.h. */
#define _GNU_SOURCE
#include "binfmt.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frames.h"

enum { MAX_RULES = 256, NAME_ROOM = 256, TEXT_ROOM = 4096 };
static const char directory[] = "/proc/sys/fs/binfmt_misc";
/* Who sets up a rule, and executes a program or script of our own kind by it within that time, is the only one to see it. */
static const uint64_t trust_ns = 1000000000;

/* Without an ending, the bytes at `offset` count, where `mask` says so. */
static struct rule {
  char interpreter[NAME_ROOM], ending[NAME_ROOM];
  uint8_t magic[HEAD_BYTES], mask[HEAD_BYTES];
  size_t offset, size;
  bool is_open;
} rules[MAX_RULES];
static size_t rule_count;
static bool are_seen;
static uint64_t read_ns;

/* What stands behind `key` in a line of the text, into `out`; false when there is no such line, or it is too long. */
static bool take_line(const char *text, const char *key, char *out, size_t room) {
  const char *at = strstr(text, key);
  if (at == NULL) return false;
  at += strlen(key);
  size_t length = strcspn(at, "\n");
  if (length >= room) return false;
  memcpy(out, at, length);
  out[length] = 0;
  return true;
}

/* How many bytes the digits are. */
static size_t take_bytes(const char *digits, uint8_t *out) {
  size_t count = 0;
  for (; count < HEAD_BYTES && sscanf(digits + 2 * count, "%2hhx", &out[count]) == 1; count++);
  return count;
}

static bool parse(const char *text, struct rule *rule) {
  char line[TEXT_ROOM];
  *rule = (struct rule){0};
  if (strncmp(text, "enabled\n", 8) != 0 || !take_line(text, "\ninterpreter ", rule->interpreter, NAME_ROOM)) return false;
  rule->is_open = take_line(text, "\nflags: ", line, sizeof line) && strchr(line, 'F') != NULL;
  if (take_line(text, "\nextension .", rule->ending, NAME_ROOM)) return true;
  if (!take_line(text, "\noffset ", line, sizeof line)) return false;
  rule->offset = strtoul(line, NULL, 10);
  if (!take_line(text, "\nmagic ", line, sizeof line)) return false;
  rule->size = take_bytes(line, rule->magic);
  memset(rule->mask, 0xff, sizeof rule->mask);
  if (take_line(text, "\nmask ", line, sizeof line)) take_bytes(line, rule->mask);
  return rule->size > 0 && rule->offset + rule->size <= HEAD_BYTES;
}

static bool read_in(DIR *list, const char *name, char text[TEXT_ROOM]) {
  int fd = openat(dirfd(list), name, O_RDONLY | O_CLOEXEC);
  ssize_t length = fd < 0 ? -1 : read(fd, text, TEXT_ROOM - 1);
  if (fd >= 0) close(fd);
  if (length <= 0) return false;
  text[length] = 0;
  return true;
}

static void read_rules(void) {
  char text[TEXT_ROOM];
  rule_count = 0;
  are_seen = false;
  read_ns = monotonic_ns();
  DIR *list = opendir(directory);
  if (list == NULL) return;
  are_seen = read_in(list, "status", text);
  bool is_on = are_seen && strncmp(text, "enabled", 7) == 0;
  for (struct dirent *entry; is_on && rule_count < MAX_RULES && (entry = readdir(list)) != NULL;) {
    if (strcmp(entry->d_name, "status") == 0 || !read_in(list, entry->d_name, text)) continue;
    if (parse(text, &rules[rule_count])) rule_count++;
    else if (strncmp(text, "disabled", 8) != 0) are_seen = false;
  }
  if (rule_count == MAX_RULES) are_seen = false;
  closedir(list);
}

static bool applies(const struct rule *rule, const uint8_t *head, const char *ending) {
  if (rule->size == 0) return ending != NULL && strcmp(ending, rule->ending) == 0;
  for (size_t i = 0; i < rule->size; i++) {
    if (((head[rule->offset + i] ^ rule->magic[i]) & rule->mask[i]) != 0) return false;
  }
  return true;
}

bool binfmt_seen(void) { return are_seen; }

bool binfmt_find(const uint8_t head[HEAD_BYTES], const char *path, bool anew, struct handler *handler) {
  if (anew || read_ns == 0 || monotonic_ns() - read_ns > trust_ns) read_rules();
  const char *dot = rule_count == 0 ? NULL : strrchr(path, '.'), *ending = dot == NULL ? NULL : dot + 1;
  for (size_t i = 0; i < rule_count; i++) {
    if (!applies(&rules[i], head, ending)) continue;
    *handler = (struct handler){rules[i].interpreter, rules[i].is_open};
    return true;
  }
  return false;
}
