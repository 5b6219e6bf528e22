/* Two hash tables, and frames in the log of the spool. See seen.h. */
#define _GNU_SOURCE
#include "seen.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "acl-group.h"
#include "frames.h"
#include "spool.h"

enum { BUCKETS = 1 << 16, WAITING_BYTES = 64 * 1024, LOOKS = SEEN_READ | SEEN_LOOKED_AT | SEEN_LISTED | SEEN_EXECUTED };
/* So long a look may wait, if another one comes. */
static const uint64_t waiting_ns = 20000000;
/* What is saved must not fill the disk that the command itself writes to. */
static const uint64_t floor_bytes = 64 * 1024 * 1024;

static struct seen *paths[BUCKETS];
static struct content *contents[BUCKETS];
static uint32_t last_path, lost;
static struct frame frame;

/* Memory that is never given back, in blocks whose pages come together: for each alone the kernel would take longer than for a look. */
enum { BLOCK_BYTES = 256 * 1024, ALIGNMENT = 16 };
static struct {
  uint8_t *at;
  size_t left;
} memory;

static size_t aligned(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

static void *take_memory(size_t bytes) {
  bytes = aligned(bytes);
  if (bytes > memory.left) {
    void *block = mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (block == MAP_FAILED) return NULL;
    memory.at = block;
    memory.left = BLOCK_BYTES;
  }
  memory.at += bytes;
  memory.left -= bytes;
  return memory.at - bytes;
}

/* What was taken last. */
static void put_back(size_t bytes) {
  memory.at -= aligned(bytes);
  memory.left += aligned(bytes);
}

/* As it goes into the log: RECORD_STAT in src/tracers/record-log.ts. */
struct logged_stat {
  uint32_t mode, uid, gid, nlink;
  uint64_t size, mtime_ns, ctime_ns, ino, dev, rdev;
};

static uint64_t hash_of(const char *path, size_t length) {
  uint64_t hash = 1469598103934665603u;
  for (size_t i = 0; i < length; i++) hash = (hash ^ (uint8_t)path[i]) * 1099511628211u;
  return hash ^ (hash >> 29);
}

/* Looks that were not written yet: one write for each would be a sixth of what a look costs. */
static struct {
  uint8_t bytes[WAITING_BYTES];
  size_t length;
  uint32_t count;
  uint64_t written_ns;
} waiting;

static void write_waiting(void) {
  if (waiting.length > 0 && !spool_log_frames(waiting.bytes, waiting.length)) lost += waiting.count;
  waiting.length = waiting.count = 0;
}

/* What changes something is in the log before it does, and so are the looks before it. */
static bool append(void) {
  write_waiting();
  if (spool_log(&frame)) return true;
  lost++;
  return false;
}

/* What changes nothing may be lost with us: nobody could take such a recording for a whole one. */
static bool append_as(uint16_t as) {
  uint64_t now = monotonic_ns();
  if ((as & ~LOOKS) != 0 || now - waiting.written_ns > waiting_ns || frame.length > sizeof waiting.bytes / 2) {
    waiting.written_ns = now;
    return append();
  }
  frame_finish(&frame);
  if (waiting.length + frame.length > sizeof waiting.bytes) write_waiting();
  memcpy(waiting.bytes + waiting.length, frame.bytes, frame.length);
  waiting.length += frame.length;
  waiting.count++;
  return true;
}

static void put_stat(const struct stat *stat) {
  struct logged_stat logged = {.mode = stat->st_mode,
                               .uid = stat->st_uid,
                               .gid = stat->st_gid,
                               .nlink = (uint32_t)stat->st_nlink,
                               .size = (uint64_t)stat->st_size,
                               .mtime_ns = in_ns(stat->st_mtim),
                               .ctime_ns = in_ns(stat->st_ctim),
                               .ino = stat->st_ino,
                               .dev = stat->st_dev,
                               .rdev = stat->st_rdev};
  frame_bytes(&frame, FIELD_STAT, &logged, sizeof logged);
}

struct seen *seen_find(const char *path, size_t length) {
  uint64_t hash = hash_of(path, length);
  for (struct seen *seen = paths[hash % BUCKETS]; seen != NULL; seen = seen->next) {
    if (seen->hash == hash && seen->length == length && memcmp(seen->path, path, length) == 0) return seen;
  }
  return NULL;
}

static bool is_another(const struct seen *seen) {
  struct stat stat;
  /* Above it a directory may have been shut: that makes it no other one. */
  if (lstat(seen->path, &stat) != 0) return errno != EACCES;
  return stat.st_ino != seen->inode || stat.st_dev != seen->device;
}

bool seen_is_below_new(const char *path, size_t length, uint32_t generation) {
  while (length > 1) {
    while (length > 1 && path[length - 1] != '/') length--;
    if (length <= 1) return false;
    struct seen *above = seen_find(path, --length);
    if (above == NULL) continue;
    if (!above->is_new && above->checked != generation) above->is_new = is_another(above);
    above->checked = generation;
    return above->is_new;
  }
  return false;
}

/* The number of a file that is gone may be that of something of another type by now. */
static bool is_same_file(const struct stat *a, const struct stat *b) {
  return a->st_ino == b->st_ino && a->st_dev == b->st_dev && (a->st_mode & S_IFMT) == (b->st_mode & S_IFMT);
}

static struct content *content_of(const struct stat *stat) {
  struct content *content = contents[(stat->st_ino ^ stat->st_dev) % BUCKETS];
  while (content != NULL && !is_same_file(&content->stat, stat)) content = content->next;
  return content;
}

struct state {
  const struct stat *stat;
  int group; /* of acl_group */
};

static void put_state(struct state state) {
  put_stat(state.stat);
  if (state.group >= 0) frame_number(&frame, FIELD_MODE, (uint32_t)state.group);
}

/* What a file (a link, a FIFO…) was when it was seen first, by whichever name. */
static struct state first_state(const struct place *place) {
  const struct stat *stat = &place->stat;
  struct content *content = S_ISDIR(stat->st_mode) ? NULL : content_of(stat);
  if (content != NULL) return (struct state){&content->stat, content->group};
  struct state first = {stat, acl_group(place->path, stat)};
  /* What has one name gets others from the recording itself, by that one; a file may have a content to be saved. */
  if (S_ISDIR(stat->st_mode) || (!S_ISREG(stat->st_mode) && stat->st_nlink == 1)) return first;
  content = take_memory(sizeof *content);
  if (content == NULL) return first;
  struct content **bucket = &contents[(stat->st_ino ^ stat->st_dev) % BUCKETS];
  *content = (struct content){.stat = *stat, .group = (int8_t)first.group, .next = *bucket};
  *bucket = content;
  return first;
}

struct seen *seen_add(const struct place *place, bool was_there, uint16_t as) {
  struct state first = was_there ? first_state(place) : (struct state){0};
  size_t bytes = sizeof(struct seen) + place->length + 1;
  struct seen *seen = take_memory(bytes);
  if (seen == NULL) {
    lost++;
    return NULL;
  }
  uint64_t hash = hash_of(place->path, place->length);
  *seen = (struct seen){.hash = hash, .number = ++last_path, .as = as, .was_there = was_there, .length = place->length};
  memcpy(seen->path, place->path, place->length + 1);
  seen->is_new = !was_there || !S_ISDIR(place->stat.st_mode);
  if (was_there) {
    seen->device = place->stat.st_dev;
    seen->inode = place->stat.st_ino;
  }
  frame_begin(&frame, FRAME_SEEN, as, 0);
  frame_number(&frame, FIELD_NUMBER, seen->number);
  if (was_there) put_state(first);
  if (was_there && S_ISLNK(place->stat.st_mode)) {
    char target[PATH_ROOM];
    ssize_t length = readlink(place->path, target, sizeof target);
    if (length > 0) frame_bytes(&frame, FIELD_TO, target, (size_t)length);
  }
  frame_bytes(&frame, FIELD_PATH, place->path, place->length);
  if (!append_as(as)) {
    put_back(bytes);
    return NULL;
  }
  seen->next = paths[hash % BUCKETS];
  paths[hash % BUCKETS] = seen;
  return seen;
}

void seen_as(struct seen *seen, uint16_t as) {
  if ((as & ~seen->as) == 0) return;
  seen->as |= as;
  frame_begin(&frame, FRAME_SEEN_AS, as, 0);
  frame_number(&frame, FIELD_NUMBER, seen->number);
  append_as(as);
}

static void tell_saved(const struct content *content, const struct place *place, int error) {
  const struct stat *now = &place->stat;
  frame_begin(&frame, FRAME_SAVED, (uint16_t)error, 0);
  frame_number(&frame, FIELD_NUMBER, content->number);
  frame_long(&frame, FIELD_INODE, content->stat.st_ino);
  frame_long(&frame, FIELD_DEVICE, content->stat.st_dev);
  /* Somebody else changed it since it was seen: what is saved is what the recording itself found. */
  bool is_same = now->st_size == content->stat.st_size && (content->stamped || in_ns(now->st_mtim) == in_ns(content->stat.st_mtim));
  if (!is_same) put_state((struct state){now, acl_group(place->path, now)});
  append();
}

void seen_save(const struct place *place, bool is_going) {
  if (!place->known || !place->exists || !S_ISREG(place->stat.st_mode)) return;
  struct content *content = content_of(&place->stat);
  /* One that is still there under the name that we gave it, because it was not deleted after all, needs a copy now. */
  if (content == NULL || (content->kept && !(content->linked && !is_going))) return;
  bool was_linked = content->linked;
  if (was_linked) spool_remove(content->number);
  content->kept = true;
  content->linked = false;
  content->number = 0;
  if (place->stat.st_size == 0 && !was_linked) return;
  /* Another name costs nothing. */
  if (is_going && place->stat.st_nlink == 1 && place->stat.st_size > SPOOL_SMALL) content->number = spool_link(place);
  content->linked = content->number != 0;
  int error = 0;
  if (!content->linked) {
    errno = 0;
    if (spool_free_bytes() < floor_bytes + (uint64_t)place->stat.st_size) error = ENOSPC;
    else if ((content->number = spool_copy_any(place)) == 0) error = errno == 0 ? EIO : errno;
  }
  tell_saved(content, place, error);
}

void seen_stamp(const struct stat *stat) {
  struct content *content = content_of(stat);
  /* Without one, a file is new; a link or a FIFO had one name, and may have got others since. */
  if (content == NULL ? S_ISREG(stat->st_mode) || S_ISDIR(stat->st_mode) : content->stamped) return;
  if (content != NULL) content->stamped = true;
  frame_begin(&frame, FRAME_STAMPED, 0, 0);
  frame_long(&frame, FIELD_INODE, stat->st_ino);
  frame_long(&frame, FIELD_DEVICE, stat->st_dev);
  append();
}

void seen_lost(uint32_t count) { lost += count; }

void seen_finish(uint32_t ignored, uint32_t foreign) {
  frame_begin(&frame, FRAME_SEEN_ALL, 0, 0);
  frame_number(&frame, FIELD_NUMBER, lost);
  frame_number(&frame, FIELD_EXEC, ignored);
  frame_number(&frame, FIELD_PARENT, foreign);
  append();
}
