/* Decides what each call means for the recording. See record.h. */
#define _GNU_SOURCE
#include "record.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include "foreign.h"
#include "record-change.h"
#include "record-known.h"
#include "record-look.h"
#include "record-note.h"
#include "seen.h"
#include "subvolumes.h"

static bool is_on, is_looking;

void record_start(bool looks) {
  is_on = true;
  is_looking = looks;
}
bool record_is_on(void) { return is_on; }
bool record_is_looking(void) { return is_looking; }
void record_ignore(const char *path) { note_ignore(path); }

void record_finish(void) {
  if (is_on) note_finish();
}

static bool only_looks(const struct rule *rule, int flags) {
  if (rule->op == OP_WRITE) return (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) == 0 || (flags & O_PATH) != 0;
  return rule->op == OP_EXEC || rule->op >= OP_STAT;
}

void record_call(struct call *call, bool is_foreign_call) {
  static struct seccomp_notif translated;
  if (is_foreign_call) {
    translated = *call->notification;
    if (!foreign_translate(tid_of(call), &translated.data)) translated.data.nr = -1;
    call->notification = &translated;
  }
  if (subvolume_concerns(&call->notification->data)) {
    translated = *call->notification;
    /* What is in one has not been saved, and goes with it. */
    bool is_known = subvolume_translate(tid_of(call), &translated.data) && translated.data.nr != __NR_unlinkat;
    call->notification = &translated;
    call->is_of_subvolume = true;
    call->refused = subvolume_is_refused(call);
    if (call->refused) return;
    if (!is_known) translated.data.nr = -1;
  }
  const struct rule *rule = rule_for(call->notification->data.nr);
  bool is_clear = call->notification->data.nr >= 0 && (rule == NULL || rule->op != OP_BY_HANDLE);
  if (!is_clear) seen_lost(1);
  /* Of x32 every call comes here. */
  if (!is_clear || rule == NULL) return;
  if (rule->op == OP_MOUNTS || rule->op == OP_CHROOT) known_stop();
  if (rule->op == OP_MOUNTS) {
    note_mounts(call, rule);
    return;
  }
  int flags = rule->op == OP_WRITE ? open_flags(call) : 0;
  bool follows = rule->follows != 0 && (flags & O_NOFOLLOW) == 0;
  if (rule->flags != NONE && ((int)argument(call, rule->flags) & AT_SYMLINK_NOFOLLOW) != 0) follows = false;
  if (rule->op == OP_EXEC) call->process->mounts_known = call->process->other_mounts = false;
  if (only_looks(rule, flags)) {
    if (is_looking) record_look(call, rule, follows, flags);
    /* Not before: its own path begins where it still is. */
    if (rule->op == OP_CHDIR) known_moves(call);
    return;
  }
  record_change(call, rule, flags, follows);
}

void record_inherited(const struct place *place) {
  note(place, SEEN_WRITTEN | SEEN_INHERITED);
  seen_save(place, false);
}
