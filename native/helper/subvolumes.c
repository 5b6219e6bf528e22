/* By the structures that their third argument points to. See subvolumes.h. */
#define _GNU_SOURCE
#include "subvolumes.h"

#include <fcntl.h>
#include <linux/btrfs.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "call.h"
#include "mounts.h"
#include "protect.h"
#include "subvolume-place.h"

/* Also where the headers of the machine that we are compiled on are older. */
#ifndef BTRFS_IOC_SNAP_DESTROY_V2
#define BTRFS_IOC_SNAP_DESTROY_V2 _IOW(BTRFS_IOCTL_MAGIC, 63, struct btrfs_ioctl_vol_args_v2)
#endif
#ifndef BTRFS_SUBVOL_SPEC_BY_ID
#define BTRFS_SUBVOL_SPEC_BY_ID (1ULL << 4)
#endif

const unsigned subvolume_kinds[] = {
    BTRFS_IOC_SUBVOL_CREATE, BTRFS_IOC_SUBVOL_CREATE_V2, BTRFS_IOC_SNAP_CREATE,
    BTRFS_IOC_SNAP_CREATE_V2, BTRFS_IOC_SNAP_DESTROY, BTRFS_IOC_SNAP_DESTROY_V2,
    BTRFS_IOC_SUBVOL_SETFLAGS,
};
const size_t subvolume_kind_count = sizeof subvolume_kinds / sizeof *subvolume_kinds;

bool subvolume_concerns(const struct seccomp_data *call) {
  if (call->nr != __NR_ioctl) return false;
  for (size_t i = 0; i < subvolume_kind_count; i++) {
    if ((uint32_t)call->args[1] == subvolume_kinds[i]) return true;
  }
  return false;
}

/* Whether the name is where a number is. When it cannot be read, neither can the name. */
static bool is_by_number(pid_t tid, uint64_t arguments) {
  uint64_t flags;
  uint64_t at = arguments + offsetof(struct btrfs_ioctl_vol_args_v2, flags);
  return read_memory(tid, at, &flags, sizeof flags) == sizeof flags && (flags & BTRFS_SUBVOL_SPEC_BY_ID) != 0;
}

bool subvolume_translate(pid_t tid, struct seccomp_data *call) {
  uint32_t kind = (uint32_t)call->args[1];
  uint64_t arguments = call->args[2];
  if (kind == BTRFS_IOC_SNAP_DESTROY_V2 && is_by_number(tid, arguments)) return false;
  /* It sets attributes of its descriptor, as it stands. */
  if (kind == BTRFS_IOC_SUBVOL_SETFLAGS) return true;
  bool is_older = kind == BTRFS_IOC_SUBVOL_CREATE || kind == BTRFS_IOC_SNAP_CREATE || kind == BTRFS_IOC_SNAP_DESTROY;
  bool deletes = kind == BTRFS_IOC_SNAP_DESTROY || kind == BTRFS_IOC_SNAP_DESTROY_V2;
  call->nr = deletes ? __NR_unlinkat : __NR_mkdirat;
  call->args[1] =
      arguments + (is_older ? offsetof(struct btrfs_ioctl_vol_args, name) : offsetof(struct btrfs_ioctl_vol_args_v2, name));
  call->args[2] = deletes ? AT_REMOVEDIR : 0;
  return true;
}

/* Its name and its number are in the same place. */
static bool is_kept(const struct call *call) {
  uint64_t number, at = argument(call, 2) + offsetof(struct btrfs_ioctl_vol_args_v2, name);
  if (read_memory(tid_of(call), at, &number, sizeof number) != sizeof number) return false;
  const char *directory;
  for (size_t i = 0; (directory = protect_directory(i)) != NULL; i++) {
    if (subvolume_takes(tid_of(call), (int)argument(call, 0), number, directory)) return true;
  }
  return false;
}

bool subvolume_is_refused(const struct call *call) {
  static struct place place;
  if (subvolume_concerns(&call->notification->data) && (uint32_t)argument(call, 1) == BTRFS_IOC_SNAP_DESTROY_V2)
    return !protect_trusts(call->process) && is_kept(call);
  place_at(call, 0, call->notification->data.nr == __NR_ioctl ? NONE : 1, false, false, &place);
  if (sees_otherwise(call)) mounts_translate(tid_of(call), &place);
  /* All that is in it goes at once. */
  bool takes = call->notification->data.nr == __NR_unlinkat && protect_is_in(&place);
  return place.known && (takes || protect_concerns(&place)) && !protect_trusts(call->process);
}
