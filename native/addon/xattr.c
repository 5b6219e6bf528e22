#define _GNU_SOURCE
#include "xattr.h"

#include <errno.h>
#include <limits.h>
#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

struct xattr_target xattr_open_file(int fd) {
  return (struct xattr_target){.fd = fd};
}

struct xattr_target xattr_path_only(int fd) {
  struct xattr_target target = {.fd = fd};
  snprintf(target.proc, sizeof target.proc, "/proc/self/fd/%d", fd);
  return target;
}

static ssize_t list_names(const struct xattr_target *target, char *out, size_t size) {
  return target->proc[0] != 0 ? listxattr(target->proc, out, size) : flistxattr(target->fd, out, size);
}

static ssize_t get_value(const struct xattr_target *target, const char *name, void *out, size_t size) {
  return target->proc[0] != 0 ? getxattr(target->proc, name, out, size) : fgetxattr(target->fd, name, out, size);
}

static int set_value(const struct xattr_target *target, const char *name, const void *value, size_t size) {
  return target->proc[0] != 0 ? setxattr(target->proc, name, value, size, 0)
                              : fsetxattr(target->fd, name, value, size, 0);
}

static int remove_name(const struct xattr_target *target, const char *name) {
  return target->proc[0] != 0 ? removexattr(target->proc, name) : fremovexattr(target->fd, name);
}

bool xattr_scratch_init(struct xattr_scratch *scratch) {
  scratch->list = malloc(XATTR_LIST_MAX);
  scratch->value = malloc(XATTR_SIZE_MAX);
  if (scratch->list != NULL && scratch->value != NULL) return true;
  xattr_scratch_free(scratch);
  return false;
}

void xattr_scratch_free(struct xattr_scratch *scratch) {
  free(scratch->list);
  free(scratch->value);
  *scratch = (struct xattr_scratch){0};
}

/* A filesystem without xattrs, or one that hides them from us. */
static bool is_absence(int error) {
  return error == ENOTSUP || error == EPERM || error == EACCES;
}

/* Of an attribute that this filesystem, kernel or user cannot have: its file is worth more without it than not at all. */
static bool is_refusal(int error) {
  return is_absence(error) || error == EINVAL || error == E2BIG || error == ERANGE;
}

static int compare_names(const void *left, const void *right) {
  return strcmp(*(char *const *)left, *(char *const *)right);
}

/* Appends at `*at` what fits; counts in any case. */
static void put(uint8_t *out, size_t room, size_t *at, const void *bytes, size_t length) {
  if (*at + length <= room && length > 0) memcpy(out + *at, bytes, length);
  *at += length;
}

static int encode_names(const struct xattr_target *target, struct xattr_scratch *scratch, char **names, size_t count,
                        uint8_t *out, size_t room, size_t *needed) {
  for (size_t i = 0; i < count; i++) {
    ssize_t got = get_value(target, names[i], scratch->value, XATTR_SIZE_MAX);
    if (got < 0 && (errno == ENODATA || is_absence(errno))) continue;
    if (got < 0) return errno;
    uint16_t name_length = (uint16_t)strlen(names[i]);
    uint32_t value_length = (uint32_t)got;
    put(out, room, needed, &name_length, sizeof name_length);
    put(out, room, needed, names[i], name_length);
    put(out, room, needed, &value_length, sizeof value_length);
    put(out, room, needed, scratch->value, value_length);
  }
  return 0;
}

int xattr_encode(const struct xattr_target *target, struct xattr_scratch *scratch, uint8_t *out, size_t room, size_t *needed) {
  *needed = 0;
  ssize_t listed = list_names(target, scratch->list, XATTR_LIST_MAX);
  if (listed == 0) return 0;
  if (listed < 0) return is_absence(errno) ? 0 : errno;
  size_t count = 0;
  for (ssize_t i = 0; i < listed; i++) count += scratch->list[i] == 0;
  char **names = malloc((count + 1) * sizeof *names);
  if (names == NULL) return ENOMEM;
  char *name = scratch->list;
  for (size_t i = 0; i < count; i++, name += strlen(name) + 1) names[i] = name;
  qsort(names, count, sizeof *names, compare_names);
  int error = encode_names(target, scratch, names, count, out, room, needed);
  if (error != 0) *needed = 0;
  free(names);
  return error;
}

struct attribute {
  char name[XATTR_NAME_MAX + 1];
  const uint8_t *value;
  uint32_t value_length;
};

/* Reads the attribute at `*at` and steps over it. False at the end (`*at` == length) or at the first malformed byte. */
static bool next_attribute(const uint8_t *encoded, size_t length, size_t *at, struct attribute *out) {
  uint16_t name_length;
  size_t left = length - *at;
  if (left < sizeof name_length) return false;
  memcpy(&name_length, encoded + *at, sizeof name_length);
  left -= sizeof name_length;
  if (name_length == 0 || name_length > XATTR_NAME_MAX || left < name_length + sizeof out->value_length) return false;
  const uint8_t *name = encoded + *at + sizeof name_length;
  if (memchr(name, 0, name_length) != NULL) return false;
  memcpy(out->name, name, name_length);
  out->name[name_length] = 0;
  memcpy(&out->value_length, name + name_length, sizeof out->value_length);
  left -= name_length + sizeof out->value_length;
  if (left < out->value_length) return false;
  out->value = name + name_length + sizeof out->value_length;
  *at = (size_t)(out->value - encoded) + out->value_length;
  return true;
}

static bool is_wanted(const uint8_t *encoded, size_t length, const char *name) {
  struct attribute attribute;
  for (size_t at = 0; next_attribute(encoded, length, &at, &attribute);) {
    if (strcmp(attribute.name, name) == 0) return true;
  }
  return false;
}

static bool is_listed(const char *list, size_t length, const char *name) {
  for (size_t at = 0; at < length; at += strlen(list + at) + 1) {
    if (strcmp(list + at, name) == 0) return true;
  }
  return false;
}

/* Labels that the kernel puts on every file (security.selinux, security.ima) may stay; a capability may not. */
static bool may_stay(const char *name) {
  return strncmp(name, "security.", 9) == 0 && strcmp(name, "security.capability") != 0;
}

static int note_failure(int error, int *refused) {
  if (!is_refusal(error)) return error;
  if (*refused == 0) *refused = error;
  return 0;
}

static int remove_unwanted(const struct xattr_target *target, const char *list, size_t listed, const uint8_t *encoded,
                           size_t length, int *refused) {
  for (size_t at = 0; at < listed; at += strlen(list + at) + 1) {
    const char *name = list + at;
    if (is_wanted(encoded, length, name) || remove_name(target, name) == 0 || errno == ENODATA) continue;
    if (is_refusal(errno) && may_stay(name)) continue;
    int error = note_failure(errno, refused);
    if (error != 0) return error;
  }
  return 0;
}

static bool has_value(const struct xattr_target *target, struct xattr_scratch *scratch, const struct attribute *attribute) {
  ssize_t got = get_value(target, attribute->name, scratch->value, XATTR_SIZE_MAX);
  return got == (ssize_t)attribute->value_length && memcmp(scratch->value, attribute->value, (size_t)got) == 0;
}

/* An access list says the mode, too, and that may shut the file to its owner: all others come before it. */
static bool is_last(const struct attribute *attribute) {
  return strcmp(attribute->name, "system.posix_acl_access") == 0;
}

int xattr_apply(const struct xattr_target *target, struct xattr_scratch *scratch, const uint8_t *encoded, size_t length,
                int *refused) {
  *refused = 0;
  struct attribute attribute;
  size_t at = 0;
  while (next_attribute(encoded, length, &at, &attribute)) continue;
  if (at != length) return EINVAL;

  ssize_t listed = list_names(target, scratch->list, XATTR_LIST_MAX);
  if (listed < 0 && !is_absence(errno)) return errno;
  size_t list_length = listed < 0 ? 0 : (size_t)listed;
  int error = remove_unwanted(target, scratch->list, list_length, encoded, length, refused);
  for (int last = 0; last <= 1; last++) {
    for (at = 0; error == 0 && next_attribute(encoded, length, &at, &attribute);) {
      if (is_last(&attribute) != last) continue;
      if (is_listed(scratch->list, list_length, attribute.name) && has_value(target, scratch, &attribute)) continue;
      if (set_value(target, attribute.name, attribute.value, attribute.value_length) != 0) {
        error = note_failure(errno, refused);
      }
    }
  }
  return error;
}
