/* One line per mount: `id parent major:minor root point options… - type source options`. See mount-table.h. */
#define _GNU_SOURCE
#include "mount-table.h"

#include <stdlib.h>
#include <string.h>

/* Blanks and backslashes in paths are written as \ooo. */
static void unescape(char *text) {
  char *to = text;
  for (const char *at = text; *at != 0; at++) {
    if (at[0] == '\\' && at[1] >= '0' && at[1] <= '3' && at[2] >= '0' && at[2] <= '7' && at[3] >= '0' && at[3] <= '7') {
      *to++ = (char)((at[1] - '0') * 64 + (at[2] - '0') * 8 + (at[3] - '0'));
      at += 3;
    } else *to++ = *at;
  }
  *to = 0;
}

static bool read_line(const char *line, struct mount *mount) {
  char *root = NULL, *point = NULL;
  const char *type = strstr(line, " - ");
  if (type == NULL || sscanf(line, "%lu %*u %u:%u %ms %ms", &mount->id, &mount->major, &mount->minor, &root, &point) != 5 ||
      sscanf(type, " - %31s", mount->type) != 1) {
    free(root);
    free(point);
    return false;
  }
  unescape(root);
  unescape(point);
  mount->root = root;
  mount->point = point;
  return true;
}

static void empty(struct mount_table *table) {
  for (size_t i = 0; i < table->count; i++) {
    free(table->mounts[i].root);
    free(table->mounts[i].point);
  }
  free(table->mounts);
  *table = (struct mount_table){0};
}

bool mount_table_read(struct mount_table *table, FILE *info) {
  char *line = NULL;
  size_t line_room = 0, room = 0;
  bool is_read = true;
  empty(table);
  while (is_read && getline(&line, &line_room, info) > 0) {
    if (table->count == room) {
      room = room == 0 ? 64 : room * 2;
      struct mount *mounts = realloc(table->mounts, room * sizeof *mounts);
      is_read = mounts != NULL;
      if (!is_read) break;
      table->mounts = mounts;
    }
    if (read_line(line, &table->mounts[table->count])) table->count++;
  }
  free(line);
  return is_read;
}

const struct mount *mount_find(const struct mount_table *table, unsigned long id) {
  for (size_t i = 0; i < table->count; i++) {
    if (table->mounts[i].id == id) return &table->mounts[i];
  }
  return NULL;
}
