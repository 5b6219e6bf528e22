/* One getdents64 for many entries and one statx per entry, no allocation per entry. See listing.h. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "listing.h"
#include "status.h"

enum { DENTS_BYTES = 256 * 1024, FLAG_MOUNT_POINT = 1, FLAG_STAT_FAILED = 2 };
/* Not all headers have these. */
enum { XFS_MAGIC = 0x58465342, ZFS_MAGIC = 0x2fc12fc1 };
#define BCACHEFS_MAGIC 0xca451a4e
static const unsigned STATUS_MASK = STATX_BASIC_STATS | STATX_MNT_ID;

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

struct listed {
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
  const struct listed *a = left, *b = right;
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

static int collect_names(struct listing *listing, int fd) {
  listing->count = listing->names_length = 0;
  for (;;) {
    long got = syscall(SYS_getdents64, fd, listing->dents, DENTS_BYTES);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;
    if (!reserve(&listing->names, &listing->names_room, listing->names_length, (size_t)got, 1)) return ENOMEM;
    for (long at = 0; at < got;) {
      const struct dirent_record *dirent = (const void *)(listing->dents + at);
      at += dirent->length;
      const char *name = dirent->name;
      if (name[0] == '.' && (name[1] == 0 || (name[1] == '.' && name[2] == 0))) continue;
      size_t length = strlen(name);
      if (!reserve(&listing->entries, &listing->entries_room, listing->count, 1, sizeof *listing->entries)) return ENOMEM;
      listing->entries[listing->count++] = (struct listed){
          .prefix = name_prefix(name, length),
          .ino = dirent->ino,
          .name = (const char *)listing->names_length,
          .name_length = (uint16_t)length,
          .type = dirent->type,
      };
      memcpy(listing->names + listing->names_length, name, length + 1);
      listing->names_length += length + 1;
    }
  }
  for (size_t i = 0; i < listing->count; i++) listing->entries[i].name = listing->names + (size_t)listing->entries[i].name;
  if (listing->count > 1) qsort(listing->entries, listing->count, sizeof *listing->entries, compare_entries);
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
  record->ino = status->stx_ino;
  record->rdev_major = status->stx_rdev_major;
  record->rdev_minor = status->stx_rdev_minor;
  record->flags = is_mount_point(directory, status) ? FLAG_MOUNT_POINT : 0;
  // Nothing of what is mounted is captured; and in a btrfs snapshot, what stands for a nested subvolume was always changed now.
  if (record->flags == 0) record->ctime_ns = to_ns(status->stx_ctime);
  // These change in a directory whenever a child comes or goes: not a change of the directory entry itself.
  if (S_ISDIR(status->stx_mode)) return;
  record->nlink = status->stx_nlink;
  record->size = status->stx_size;
  record->mtime_ns = to_ns(status->stx_mtime);
}

/*
 * Whether somebody else than this kernel serves the filesystem (FUSE, NFS), or may serve what lies below it (overlayfs). With
 * AT_STATX_DONT_SYNC, what FUSE tells of a file is as it was before the last write, and an edit of the same size is missed.
 */
static bool is_served(struct listing *listing, int fd, const struct statx *directory) {
  uint64_t device = (uint64_t)directory->stx_dev_major << 32 | directory->stx_dev_minor;
  if (listing->has_asked && listing->device == device) return listing->is_served;
  struct statfs filesystem;
  listing->has_asked = true;
  listing->device = device;
  listing->is_served = true;
  if (fstatfs(fd, &filesystem) != 0) return true;
  switch ((uint32_t)filesystem.f_type) {
    case EXT4_SUPER_MAGIC:
    case XFS_MAGIC:
    case BTRFS_SUPER_MAGIC:
    case TMPFS_MAGIC:
    case F2FS_SUPER_MAGIC:
    case ZFS_MAGIC:
    case BCACHEFS_MAGIC:
      listing->is_served = false;
  }
  return listing->is_served;
}

/* What is mounted there is only recognised: whoever serves it (sshfs, NFS) may be away and never answer. */
static int look_at(int fd, const struct listed *entry, bool is_served, const struct statx *directory, struct statx *status) {
  const int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT;
  if (!is_served) return statx(fd, entry->name, flags | AT_STATX_DONT_SYNC, STATUS_MASK, status);
  if ((entry->type == DT_DIR || entry->type == DT_UNKNOWN) &&
      statx(fd, entry->name, flags | AT_STATX_DONT_SYNC, STATUS_MASK, status) == 0 && is_mount_point(directory, status))
    return 0;
  return statx(fd, entry->name, flags, STATUS_MASK, status);
}

static int append_records(struct listing *listing, int fd, struct header *header) {
  struct statx directory, status;
  if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATUS_MASK, &directory) != 0) return errno;
  const bool served = is_served(listing, fd, &directory);
  size_t start = listing->length;
  for (size_t i = 0; i < listing->count; i++) {
    const struct listed *entry = &listing->entries[i];
    struct record record = {.name_length = entry->name_length};
    if (look_at(fd, entry, served, &directory, &status) == 0) {
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
    if (listing->length + bytes - start > UINT32_MAX) return EOVERFLOW;
    if (!reserve(&listing->out, &listing->room, listing->length, bytes, 1)) return ENOMEM;
    memcpy(listing->out + listing->length, &record, sizeof record);
    memcpy(listing->out + listing->length + sizeof record, entry->name, entry->name_length);
    listing->length += bytes;
    header->count++;
  }
  header->bytes = (uint32_t)(listing->length - start);
  const int how = served ? 0 : AT_STATX_DONT_SYNC;
  if (statx(fd, "", AT_EMPTY_PATH | how, STATX_CTIME, &directory) != 0) return errno;
  header->ctime_ns = to_ns(directory.stx_ctime);
  return 0;
}

/* Whether these are the records that the caller knows for the directory at `index`. */
static bool is_known(const struct listing *listing, size_t index, const uint8_t *records, size_t length) {
  struct span span;
  if ((index + 1) * sizeof span > listing->spans.length) return false;
  memcpy(&span, listing->spans.data + index * sizeof span, sizeof span);
  return span.length == length && span.offset <= listing->known.length && length <= listing->known.length - span.offset &&
         memcmp(listing->known.data + span.offset, records, length) == 0;
}

int listing_add(struct listing *listing, struct resolver *resolver, size_t index, const char *path, size_t length) {
  if (!reserve(&listing->out, &listing->room, listing->length, sizeof(struct header), 1)) return ENOMEM;
  size_t header_at = listing->length;
  listing->length += sizeof(struct header);
  struct header header = {0};
  int error = resolve(resolver, path, length);
  if (error == 0) {
    int fd = open_for_listing(resolver);
    if (fd < 0) {
      error = errno;
    } else {
      error = collect_names(listing, fd);
      if (error == 0) error = append_records(listing, fd, &header);
      close(fd);
    }
  }
  if (error != 0) {
    header = (struct header){.error = error};
    listing->length = header_at + sizeof header;
  }
  uint8_t *records = listing->out + header_at + sizeof header;
  if (error == 0 && is_known(listing, index, records, header.bytes)) {
    header.same = 1;
    header.bytes = 0;
    listing->length = header_at + sizeof header;
  }
  memcpy(listing->out + header_at, &header, sizeof header);
  return error == ENOMEM ? ENOMEM : 0;
}

bool listing_begin(struct listing *listing) {
  listing->dents = malloc(DENTS_BYTES);
  return listing->dents != NULL;
}

void listing_end(struct listing *listing) {
  free(listing->dents);
  free(listing->names);
  free(listing->entries);
}
