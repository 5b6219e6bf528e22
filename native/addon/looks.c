/* settleLooks for JavaScript: which paths of a recording were only looked at, and are still as they were. See looks.h. */
#define _GNU_SOURCE
#include "looks.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "addon.h"
#include "status.h"

enum { MAX_LEVELS = 128, MANY = 8192 };

/* A path that was seen. */
struct look {
  struct text_view path;
  uint32_t offset, as;
  bool is_settled;
};

struct looks {
  const struct bytes_view *log;
  struct look *all;
  size_t count;
  struct look **by_number; /* NULL: there is none of this number */
  size_t numbers;
};

/* Passes over the log twice: what there is, then where. */
static size_t count_frames(struct looks *looks) {
  struct seen_frame frame;
  size_t frames = 0;
  for (size_t at = 0; seen_frame_at(looks->log, at, &frame); at = frame.end, frames++) {
    if (frame.type != FRAME_SEEN) continue;
    looks->count++;
    if (frame.number >= looks->numbers) looks->numbers = (size_t)frame.number + 1;
  }
  return frames;
}

static bool collect(struct looks *looks) {
  looks->all = calloc(looks->count + 1, sizeof *looks->all);
  looks->by_number = calloc(looks->numbers + 1, sizeof *looks->by_number);
  if (looks->all == NULL || looks->by_number == NULL) return false;
  struct look *next = looks->all;
  struct seen_frame frame;
  for (size_t at = 0; seen_frame_at(looks->log, at, &frame); at = frame.end) {
    if (frame.type == FRAME_SEEN) {
      *next = (struct look){.path = frame.path, .offset = (uint32_t)at, .as = frame.as};
      looks->by_number[frame.number] = next++;
    } else if (frame.type == FRAME_SEEN_AS && frame.number < looks->numbers && looks->by_number[frame.number] != NULL) {
      looks->by_number[frame.number]->as |= frame.as;
    }
  }
  return true;
}

static int by_path(const void *left, const void *right) {
  const struct text_view *a = &(*(struct look *const *)left)->path, *b = &(*(struct look *const *)right)->path;
  int order = memcmp(a->bytes, b->bytes, a->length < b->length ? a->length : b->length);
  return order != 0 ? order : (a->length > b->length) - (a->length < b->length);
}

/* A directory on the way to the path that is looked at. */
struct level {
  size_t length;  /* of its path, which the path begins with; without the slash behind it */
  int fd;
  bool is_absent; /* it is no directory, nor one reached through a link */
  bool is_unclear; /* it cannot be looked into, or git may know what is below */
};

struct way {
  struct text_view path; /* the last one */
  struct level levels[MAX_LEVELS];
  size_t depth;
};

static void look_for_git(struct level *level) {
  struct stat stat;
  bool is_there = fstatat(level->fd, ".git", &stat, AT_SYMLINK_NOFOLLOW) == 0;
  if (is_there || errno != ENOENT) level->is_unclear = true;
}

static void enter(struct way *way, const char *name, size_t end) {
  const struct level *above = way->depth == 0 ? NULL : &way->levels[way->depth - 1];
  struct level level = {.length = end, .fd = -1};
  if (above != NULL) level.is_absent = above->is_absent, level.is_unclear = above->is_unclear;
  if (!level.is_absent && !level.is_unclear) {
    int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    level.fd = above == NULL ? open("/", flags) : openat(above->fd, name, flags);
    if (level.fd >= 0) look_for_git(&level);
    else if (errno == ENOENT || errno == ENOTDIR) level.is_absent = true;
    else level.is_unclear = true;
  }
  way->levels[way->depth++] = level;
}

static void leave(struct way *way) {
  int fd = way->levels[--way->depth].fd;
  if (fd >= 0) close(fd);
}

static bool is_on_way(const struct way *way, const struct level *level, const struct text_view *path) {
  return path->length > level->length && path->bytes[level->length] == '/' && memcmp(path->bytes, way->path.bytes, level->length) == 0;
}

/* Copies a name, which fits; false: it is none. */
static bool take_name(char name[NAME_MAX + 1], const char *from, const char *end) {
  size_t length = (size_t)(end - from);
  if (length == 0 || length > NAME_MAX) return false;
  memcpy(name, from, length);
  name[length] = 0;
  return true;
}

/* The directory that holds a path, and the name there; NULL: that cannot be said. */
static const struct level *go_to(struct way *way, const struct text_view *path, char name[NAME_MAX + 1]) {
  if (path->length < 2 || path->bytes[0] != '/') return NULL;
  while (way->depth > 0 && !is_on_way(way, &way->levels[way->depth - 1], path)) leave(way);
  way->path = *path;
  if (way->depth == 0) enter(way, "", 0);
  const char *end = path->bytes + path->length;
  for (;;) {
    const char *from = path->bytes + way->levels[way->depth - 1].length + 1;
    const char *slash = memchr(from, '/', (size_t)(end - from));
    if (!take_name(name, from, slash == NULL ? end : slash)) return NULL;
    if (slash == NULL) return &way->levels[way->depth - 1];
    if (way->depth == MAX_LEVELS) return NULL;
    enter(way, name, (size_t)(slash - path->bytes));
  }
}

static int64_t time_ns(const struct timespec *time) {
  return to_ns((struct statx_timestamp){.tv_sec = time->tv_sec, .tv_nsec = (uint32_t)time->tv_nsec});
}

static bool is_as_logged(const struct stat *now, const uint8_t *logged) {
  struct logged_stat was;
  memcpy(&was, logged, sizeof was);
  /* What was written by another name of the file, and got its time back, shows there alone. */
  if (S_ISREG(now->st_mode) && time_ns(&now->st_ctim) != was.ctime_ns) return false;
  return now->st_mode == was.mode && now->st_uid == was.uid && now->st_gid == was.gid && (uint64_t)now->st_size == was.size &&
         time_ns(&now->st_mtim) == was.mtime_ns && now->st_ino == was.ino && now->st_dev == was.dev;
}

static bool is_still(struct way *way, const struct seen_frame *frame) {
  char name[NAME_MAX + 1];
  const struct level *level = go_to(way, &frame->path, name);
  if (level == NULL || level->is_unclear) return false;
  if (level->is_absent) return frame->stat == NULL;
  struct stat now;
  if (fstatat(level->fd, name, &now, AT_SYMLINK_NOFOLLOW) != 0) return frame->stat == NULL && errno == ENOENT;
  return frame->stat != NULL && is_as_logged(&now, frame->stat);
}

/* Text that stands in JSON as it is. */
static bool is_simple(const struct text_view *text) {
  for (size_t i = 0; i < text->length; i++) {
    char c = text->bytes[i];
    if (c < ' ' || c > '~' || c == '"' || c == '\\') return false;
  }
  return text->length > 0;
}

/* Whether nothing of it but its state is wanted, and that can be told here. */
static bool is_only_looked_at(const struct seen_frame *frame, uint32_t as) {
  uint32_t looks = SEEN_READ | SEEN_LOOKED_AT | SEEN_LISTED | SEEN_EXECUTED;
  if (frame->has_acl || !is_simple(&frame->path)) return false;
  if (frame->stat != NULL) {
    uint32_t mode; /* its first field */
    memcpy(&mode, frame->stat, sizeof mode);
    if (S_ISREG(mode)) looks = SEEN_LOOKED_AT | SEEN_LISTED;
    else if (S_ISLNK(mode) ? !is_simple(&frame->target) : !S_ISDIR(mode) && !S_ISFIFO(mode) && !S_ISSOCK(mode)) return false;
  }
  return (as & ~looks) == 0;
}

/* All in a directory that came as a whole is new. They follow it, though not at once: `a-b` comes before `a/b`. */
static bool starts_with(const struct text_view *path, const struct text_view *with) {
  return path->length >= with->length && memcmp(path->bytes, with->bytes, with->length) == 0;
}

static void mark_candidates(struct look **sorted, size_t count) {
  const struct text_view *moved = NULL;
  for (size_t i = 0; i < count; i++) {
    if (moved != NULL && starts_with(&sorted[i]->path, moved)) continue;
    moved = (sorted[i]->as & SEEN_MOVED) != 0 ? &sorted[i]->path : NULL;
    sorted[i]->is_settled = moved == NULL;
  }
}

struct share {
  const struct bytes_view *log;
  struct look **sorted;
  size_t count, settled;
};

static void *settle_share(void *argument) {
  struct share *share = argument;
  struct way way = {.depth = 0};
  for (size_t i = 0; i < share->count; i++) {
    struct look *look = share->sorted[i];
    struct seen_frame frame;
    if (!look->is_settled) continue;
    look->is_settled = seen_frame_at(share->log, look->offset, &frame) && is_only_looked_at(&frame, look->as) && is_still(&way, &frame);
    share->settled += look->is_settled;
  }
  while (way.depth > 0) leave(&way);
  return NULL;
}

/* Many are shared with another thread. */
static size_t settle(const struct looks *looks, struct look **sorted) {
  mark_candidates(sorted, looks->count);
  size_t half = looks->count < MANY ? 0 : looks->count / 2;
  struct share other = {.log = looks->log, .sorted = sorted, .count = half};
  struct share own = {.log = looks->log, .sorted = sorted + half, .count = looks->count - half};
  pthread_t thread;
  bool is_shared = half > 0 && pthread_create(&thread, NULL, settle_share, &other) == 0;
  settle_share(&own);
  if (is_shared) pthread_join(thread, NULL);
  else settle_share(&other);
  return own.settled + other.settled;
}

static bool is_settled(const struct looks *looks, const struct seen_frame *frame) {
  if (frame->type != FRAME_SEEN && frame->type != FRAME_SEEN_AS) return false;
  return frame->number < looks->numbers && looks->by_number[frame->number] != NULL && looks->by_number[frame->number]->is_settled;
}

static napi_value make_result(napi_env env, const struct looks *looks, struct look **sorted, size_t settled, size_t frames) {
  struct settled *out = malloc(settled * sizeof *out + 1), *next = out;
  uint32_t *rest = malloc(frames * sizeof *rest + 1), *left = rest;
  napi_value result = NULL, first = NULL, second = NULL;
  if (out != NULL && rest != NULL) {
    for (size_t i = 0; i < looks->count; i++) {
      if (sorted[i]->is_settled) *next++ = (struct settled){.offset = sorted[i]->offset, .as = sorted[i]->as};
    }
    struct seen_frame frame;
    for (size_t at = 0; seen_frame_at(looks->log, at, &frame); at = frame.end) {
      if (!is_settled(looks, &frame)) *left++ = (uint32_t)at;
    }
    first = make_buffer_copy(env, out, settled * sizeof *out);
    second = first == NULL ? NULL : make_buffer_copy(env, rest, (size_t)(left - rest) * sizeof *rest);
  } else throw_errno(env, ENOMEM, "malloc", NULL, 0);
  free(out);
  free(rest);
  if (second == NULL || napi_create_object(env, &result) != napi_ok || napi_set_named_property(env, result, "settled", first) != napi_ok ||
      napi_set_named_property(env, result, "rest", second) != napi_ok) {
    return NULL;
  }
  return result;
}

napi_value addon_settle_looks(napi_env env, napi_callback_info info) {
  napi_value arguments[1], result = NULL;
  struct bytes_view log;
  if (!get_arguments(env, info, 1, arguments) || !get_buffer(env, arguments[0], &log)) return NULL;
  if (log.length > UINT32_MAX) {
    throw_errno(env, EFBIG, "settleLooks", NULL, 0);
    return NULL;
  }
  struct looks looks = {.log = &log};
  size_t frames = count_frames(&looks);
  /* Numbers come one after another; a few may be missing. */
  bool is_sound = looks.numbers <= log.length;
  struct look **sorted = malloc(looks.count * sizeof *sorted + 1);
  if (!is_sound) throw_errno(env, EBADMSG, "settleLooks", NULL, 0);
  else if (sorted == NULL || !collect(&looks)) throw_errno(env, ENOMEM, "malloc", NULL, 0);
  else {
    for (size_t i = 0; i < looks.count; i++) sorted[i] = &looks.all[i];
    qsort(sorted, looks.count, sizeof *sorted, by_path);
    result = make_result(env, &looks, sorted, settle(&looks, sorted), frames);
  }
  free(sorted);
  free(looks.all);
  free(looks.by_number);
  return result;
}
