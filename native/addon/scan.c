/*
 * scanDirs: lists directories with statx of every entry, on a libuv thread. The hot path of every capture: one getdents64
 * and one statx per entry, no allocation per entry.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "addon.h"
#include "napi-util.h"
#include "resolve.h"
#include "status.h"

enum { DENTS_BYTES = 256 * 1024, FLAG_MOUNT_POINT = 1, FLAG_STAT_FAILED = 2 };

struct dirent_record { /* what getdents64 writes */
  uint64_t ino;
  int64_t offset;
  uint16_t length;
  uint8_t type;
  char name[];
};

struct __attribute__((packed)) record { /* RECORD in addon.ts; the name follows */
  uint16_t name_length;
  uint16_t mode;
  uint32_t nlink;
  uint32_t uid;
  uint32_t gid;
  uint64_t size;
  int64_t mtime_ns;
  int64_t ctime_ns;
  uint64_t ino;
  uint32_t rdev_major;
  uint32_t rdev_minor;
  uint8_t flags;
  uint8_t reserved[3];
};
_Static_assert(sizeof(struct record) == 60, "RECORD.name in addon.ts");

struct header { /* SCAN_HEADER in addon.ts */
  uint32_t bytes;
  uint32_t count;
  int32_t error;
  uint32_t same;
  int64_t ctime_ns; /* of the directory, after everything in it was looked at */
};
_Static_assert(sizeof(struct header) == 24, "SCAN_HEADER.size in addon.ts");

struct entry {
  uint64_t prefix; /* the first eight bytes of the name, big-endian: decides most comparisons */
  uint64_t ino;
  const char *name; /* while names are collected: the offset into `names` */
  uint16_t name_length;
  uint8_t type;
};

/* Where the caller's knowledge of one directory lies in `known`; SPAN in addon.ts. */
struct span {
  uint32_t offset, length;
};

struct scan {
  napi_async_work work;
  napi_deferred deferred;
  int root; /* our own duplicate: JavaScript may close its descriptor while we run */
  int error;
  uint8_t *paths;
  size_t paths_length;
  napi_ref known_ref, spans_ref; /* keep what the two views show while we run */
  struct bytes_view known, spans;
  uint8_t *out;
  size_t length, room;
  /* scratch, reused from directory to directory */
  uint8_t *dents;
  char *names;
  size_t names_length, names_room;
  struct entry *entries;
  size_t count, entries_room;
};

/* Makes room for `more` items behind `used`. Doubles, so that appending is linear. */
static bool reserve(void *pointer, size_t *room, size_t used, size_t more, size_t item) {
  if (used + more <= *room) return true;
  size_t wanted = (used + more) * 2;
  void *grown = realloc(*(void **)pointer, wanted * item);
  if (grown == NULL) return false;
  *(void **)pointer = grown;
  *room = wanted;
  return true;
}

static uint64_t name_prefix(const char *name, size_t length) {
  uint64_t prefix = 0;
  memcpy(&prefix, name, length < 8 ? length : 8);
  return __builtin_bswap64(prefix);
}

/* Byte order, a name before its extensions. Names hold no NUL, so zero padding in `prefix` sorts the same way. */
static int compare_entries(const void *left, const void *right) {
  const struct entry *a = left, *b = right;
  if (a->prefix != b->prefix) return a->prefix < b->prefix ? -1 : 1;
  size_t shorter = a->name_length < b->name_length ? a->name_length : b->name_length;
  int order = memcmp(a->name, b->name, shorter);
  return order != 0 ? order : (int)a->name_length - (int)b->name_length;
}

static int open_for_listing(const struct resolver *resolver) {
  int fd = open_resolved(resolver, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_NOATIME, 0);
  // O_NOATIME is for the owner only.
  if (fd < 0 && errno == EPERM) fd = open_resolved(resolver, O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0);
  return fd;
}

static int collect_names(struct scan *scan, int fd) {
  scan->count = scan->names_length = 0;
  for (;;) {
    long got = syscall(SYS_getdents64, fd, scan->dents, DENTS_BYTES);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;
    if (!reserve(&scan->names, &scan->names_room, scan->names_length, (size_t)got, 1)) return ENOMEM;
    for (long at = 0; at < got;) {
      const struct dirent_record *dirent = (const void *)(scan->dents + at);
      at += dirent->length;
      const char *name = dirent->name;
      if (name[0] == '.' && (name[1] == 0 || (name[1] == '.' && name[2] == 0))) continue;
      size_t length = strlen(name);
      if (!reserve(&scan->entries, &scan->entries_room, scan->count, 1, sizeof *scan->entries)) return ENOMEM;
      scan->entries[scan->count++] = (struct entry){
          .prefix = name_prefix(name, length),
          .ino = dirent->ino,
          .name = (const char *)scan->names_length,
          .name_length = (uint16_t)length,
          .type = dirent->type,
      };
      memcpy(scan->names + scan->names_length, name, length + 1);
      scan->names_length += length + 1;
    }
  }
  for (size_t i = 0; i < scan->count; i++) scan->entries[i].name = scan->names + (size_t)scan->entries[i].name;
  if (scan->count > 1) qsort(scan->entries, scan->count, sizeof *scan->entries, compare_entries);
  return 0;
}

/*
 * Another mount id than the directory's, or, for a directory, another device (a nested btrfs subvolume has one without a
 * mount). Files are exempt from the second rule: overlayfs may report the device of a lower layer for them.
 */
static bool is_mount_point(const struct statx *directory, const struct statx *entry) {
  bool other_device = entry->stx_dev_major != directory->stx_dev_major || entry->stx_dev_minor != directory->stx_dev_minor;
  if ((entry->stx_mask & directory->stx_mask & STATX_MNT_ID) == 0) return other_device;
  return entry->stx_mnt_id != directory->stx_mnt_id || (other_device && S_ISDIR(entry->stx_mode));
}

static void fill_record(struct record *record, const struct statx *status, const struct statx *directory) {
  record->mode = status->stx_mode;
  record->uid = status->stx_uid;
  record->gid = status->stx_gid;
  record->ctime_ns = to_ns(status->stx_ctime);
  record->ino = status->stx_ino;
  record->rdev_major = status->stx_rdev_major;
  record->rdev_minor = status->stx_rdev_minor;
  record->flags = is_mount_point(directory, status) ? FLAG_MOUNT_POINT : 0;
  // These change in a directory whenever a child comes or goes: not a change of the directory entry itself.
  if (S_ISDIR(status->stx_mode)) return;
  record->nlink = status->stx_nlink;
  record->size = status->stx_size;
  record->mtime_ns = to_ns(status->stx_mtime);
}

static int append_records(struct scan *scan, int fd, struct header *header) {
  const int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC;
  const unsigned mask = STATX_BASIC_STATS | STATX_MNT_ID;
  struct statx directory, status;
  if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, mask, &directory) != 0) return errno;
  size_t start = scan->length;
  for (size_t i = 0; i < scan->count; i++) {
    const struct entry *entry = &scan->entries[i];
    struct record record = {.name_length = entry->name_length};
    if (statx(fd, entry->name, flags, mask, &status) == 0) {
      fill_record(&record, &status, &directory);
    } else if (errno == ENOENT) {
      continue; // vanished since getdents64
    } else {
      record.mode = (uint16_t)DTTOIF(entry->type);
      record.ino = entry->ino;
      record.rdev_major = (uint32_t)errno;
      record.flags = FLAG_STAT_FAILED;
    }
    size_t bytes = sizeof record + entry->name_length;
    if (scan->length + bytes - start > UINT32_MAX) return EOVERFLOW;
    if (!reserve(&scan->out, &scan->room, scan->length, bytes, 1)) return ENOMEM;
    memcpy(scan->out + scan->length, &record, sizeof record);
    memcpy(scan->out + scan->length + sizeof record, entry->name, entry->name_length);
    scan->length += bytes;
    header->count++;
  }
  header->bytes = (uint32_t)(scan->length - start);
  if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_CTIME, &directory) != 0) return errno;
  header->ctime_ns = to_ns(directory.stx_ctime);
  return 0;
}

/* Whether these are the records that the caller knows for the directory at `index`. */
static bool is_known(const struct scan *scan, size_t index, const uint8_t *records, size_t length) {
  struct span span;
  if ((index + 1) * sizeof span > scan->spans.length) return false;
  memcpy(&span, scan->spans.data + index * sizeof span, sizeof span);
  return span.length == length && span.offset <= scan->known.length && length <= scan->known.length - span.offset &&
         memcmp(scan->known.data + span.offset, records, length) == 0;
}

static int scan_one(struct scan *scan, struct resolver *resolver, size_t index, const char *path, size_t length) {
  if (!reserve(&scan->out, &scan->room, scan->length, sizeof(struct header), 1)) return ENOMEM;
  size_t header_at = scan->length;
  scan->length += sizeof(struct header);
  struct header header = {0};
  int error = resolve(resolver, path, length);
  if (error == 0) {
    int fd = open_for_listing(resolver);
    if (fd < 0) {
      error = errno;
    } else {
      error = collect_names(scan, fd);
      if (error == 0) error = append_records(scan, fd, &header);
      close(fd);
    }
  }
  if (error != 0) {
    header = (struct header){.error = error};
    scan->length = header_at + sizeof header;
  }
  uint8_t *records = scan->out + header_at + sizeof header;
  if (error == 0 && is_known(scan, index, records, header.bytes)) {
    header.same = 1;
    header.bytes = 0;
    scan->length = header_at + sizeof header;
  }
  memcpy(scan->out + header_at, &header, sizeof header);
  return error == ENOMEM ? ENOMEM : 0;
}

static void execute(napi_env env, void *data) {
  (void)env;
  struct scan *scan = data;
  struct resolver resolver;
  resolver_init(&resolver, scan->root);
  scan->dents = malloc(DENTS_BYTES);
  if (scan->dents == NULL) scan->error = ENOMEM;
  struct path_list list;
  const char *path;
  size_t length;
  path_list_init(&list, scan->paths, scan->paths_length);
  for (size_t i = 0; scan->error == 0 && path_list_next(&list, &path, &length); i++) {
    scan->error = scan_one(scan, &resolver, i, path, length);
  }
  resolver_close(&resolver);
  free(scan->dents);
  free(scan->names);
  free(scan->entries);
  if (scan->error == 0 && scan->length > 0) {
    void *trimmed = realloc(scan->out, scan->length);
    if (trimmed != NULL) scan->out = trimmed;
  }
}

static void free_scan(napi_env env, struct scan *scan) {
  if (scan->work != NULL) napi_delete_async_work(env, scan->work);
  if (scan->known_ref != NULL) napi_delete_reference(env, scan->known_ref);
  if (scan->spans_ref != NULL) napi_delete_reference(env, scan->spans_ref);
  if (scan->root >= 0) close(scan->root);
  free(scan->paths);
  free(scan->out);
  free(scan);
}

static void complete(napi_env env, napi_status status, void *data) {
  struct scan *scan = data;
  int error = status == napi_cancelled ? ECANCELED : scan->error;
  napi_value value = NULL;
  if (error != 0) {
    value = make_errno_error(env, error, "scandir", NULL, 0);
    if (value != NULL) napi_reject_deferred(env, scan->deferred, value);
  } else {
    value = make_buffer_owning(env, scan->out, scan->length);
    scan->out = NULL;
    if (value != NULL) napi_resolve_deferred(env, scan->deferred, value);
  }
  free_scan(env, scan);
}

napi_value addon_scan_dirs(napi_env env, napi_callback_info info) {
  napi_value arguments[4];
  struct bytes_view paths, known = {0}, spans = {0};
  int root;
  size_t given = 4;
  if (!get_arguments(env, info, 2, arguments) || napi_get_cb_info(env, info, &given, arguments, NULL, NULL) != napi_ok ||
      !get_int(env, arguments[0], &root) || !get_buffer(env, arguments[1], &paths)) {
    return NULL;
  }
  bool knows = given == 4;
  if (knows && (!get_buffer(env, arguments[2], &known) || !get_buffer(env, arguments[3], &spans))) return NULL;
  struct scan *scan = calloc(1, sizeof *scan);
  uint8_t *copy = malloc(paths.length + 1);
  int own_root = root < 0 ? (errno = EBADF, -1) : fcntl(root, F_DUPFD_CLOEXEC, 3);
  int error = scan == NULL || copy == NULL ? ENOMEM : own_root < 0 ? errno : 0;
  if (error != 0) {
    if (own_root >= 0) close(own_root);
    free(copy);
    free(scan);
    throw_errno(env, error, "dup", NULL, 0);
    return NULL;
  }
  if (paths.length > 0) memcpy(copy, paths.data, paths.length);
  scan->root = own_root;
  scan->paths = copy;
  scan->paths_length = paths.length;
  scan->known = known;
  scan->spans = spans;
  napi_value promise, name;
  if ((knows && napi_create_reference(env, arguments[2], 1, &scan->known_ref) != napi_ok) ||
      (knows && napi_create_reference(env, arguments[3], 1, &scan->spans_ref) != napi_ok) ||
      napi_create_string_latin1(env, "savepoint.scanDirs", NAPI_AUTO_LENGTH, &name) != napi_ok ||
      napi_create_async_work(env, NULL, name, execute, complete, scan, &scan->work) != napi_ok ||
      napi_create_promise(env, &scan->deferred, &promise) != napi_ok ||
      napi_queue_async_work(env, scan->work) != napi_ok) {
    free_scan(env, scan);
    napi_throw_error(env, NULL, "cannot queue scanDirs");
    return NULL;
  }
  return promise;
}
