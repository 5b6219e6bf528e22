/* By what each call does to names and bytes. See losses.h. */
#define _GNU_SOURCE
#include "losses.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "before.h"
#include "keep.h"
#include "spool.h"

/* It fails where something is already. */
static bool replaces_nothing(const struct call *call) {
  return call->notification->data.nr == __NR_renameat2 && (argument(call, 4) & RENAME_NOREPLACE) != 0;
}

/* What leaves the target is not seen any more. */
static const struct place *leaving(enum path_op op, const struct place *place, const struct place *to) {
  if (!place->known || !to->known) return NULL;
  if (spool_inside(place) != NULL && spool_inside(to) == NULL) return place;
  return op == OP_EXCHANGE && spool_inside(to) != NULL && spool_inside(place) == NULL ? to : NULL;
}

/* What the call destroys, into `loss`; false: nothing. */
static bool find_loss(const struct call *call, enum path_op op, const struct place *place, const struct place *to, struct loss *loss) {
  loss->place = place;
  loss->empties = op == OP_TRUNCATE || op == OP_WRITE;
  switch (op) {
    case OP_DELETE: return true;
    case OP_TRUNCATE: return (off_t)argument(call, 1) < place->stat.st_size; /* or it grows */
    /* What somebody else has written, and the run was not at yet or not since, may be overwritten in any way. */
    case OP_WRITE: return (open_flags(call) & O_TRUNC) != 0 || !keep_is_told(place) || ((open_flags(call) & O_APPEND) == 0 && keep_is_edited(place));
    case OP_RENAME:
    case OP_EXCHANGE:
      /* As `mv` tries first. */
      if (replaces_nothing(call) && to->exists) return false;
      loss->place = leaving(op, place, to);
      if (loss->place == NULL && op == OP_RENAME) loss->place = to;
      return loss->place != NULL;
    default: return false;
  }
}

/* It fails, and whoever wanted it copies what is there, and removes it piece by piece. */
static bool is_elsewhere(const struct place *to, const struct stat *directory) {
  static char path[PATH_ROOM];
  struct stat above;
  size_t length = (size_t)((const char *)memrchr(to->path, '/', to->length) - to->path);
  memcpy(path, to->path, length);
  path[length] = 0;
  return stat(length == 0 ? "/" : path, &above) == 0 && above.st_dev != directory->st_dev;
}

void losses_keep(const struct call *call, enum path_op op, const struct place *place, const struct place *to) {
  static struct frame frame;
  struct loss loss = {.op = op, .exec = process_present(call->process), .pid = call->process->pid};
  before_change(op, place, to);
  bool fails = op == OP_RENAME && replaces_nothing(call) && to->exists;
  if ((op == OP_RENAME || op == OP_EXCHANGE) && !fails) keep_moved(place, to);
  if (!find_loss(call, op, place, to, &loss)) return;
  bool is_moved = (op == OP_RENAME || op == OP_EXCHANGE) && loss.place == leaving(op, place, to);
  bool is_directory = loss.place->exists && S_ISDIR(loss.place->stat.st_mode);
  if (is_moved && is_directory) {
    if (!is_elsewhere(loss.place == place ? to : place, &loss.place->stat)) keep_below(&loss, &frame, call->notifier->stream);
  } else if (keep(&loss, &frame)) stream_put(call->notifier->stream, &frame);
}
