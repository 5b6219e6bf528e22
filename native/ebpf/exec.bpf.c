/*
 * Programs in the kernel that tell what the processes of a run execute and how they end. Which processes those are, and
 * which execution each belongs to, is kept here: a fork needs no event, and nothing is mistaken when events are lost.
 *
 * License: MIT or GPL, as the kernel asks of programs that use its tracing functions (EBPF_LICENSE in ebpf-load.c).
 * scripts/build-ebpf.sh compiles this to exec.bpf.o, which is part of the repository; native/helper/ebpf-load.c loads it.
 */
#include "event.h"
#include "helpers.h"
#include "kernel-types.h"

enum { SIGNAL_GROUP_EXIT = 4, MAX_LEVELS = 32, MAX_CGROUPS = 32, MAX_STEPS = 128, ROOM_TRIES = 8, PAGE = 4096 };

/* Made by the helper, which knows their kinds and sizes by these names. */
struct map {
  int unused;
};
struct map settings SECTION(".maps");
struct map processes SECTION(".maps");
struct map rooms SECTION(".maps");
struct map ring SECTION(".maps");

INLINE struct ebpf_settings *get_settings(void) {
  uint32_t zero = 0;
  return map_find(&settings, &zero);
}

INLINE void put(struct ebpf_settings *set, void *data, uint64_t size, long *failed) {
  uint64_t flags = ring_ask(&ring, RING_AVAILABLE) >= set->wake_bytes ? RING_FORCE_WAKEUP : 0;
  *failed = ring_put(&ring, data, size, flags);
  if (*failed) __sync_fetch_and_add(&set->lost, 1);
}

/* The pid of a process as the helper's namespace has it. */
INLINE uint32_t pid_of(struct ebpf_settings *set, struct task_struct *leader) {
  struct pid *pid = FETCH(leader->thread_pid);
  struct upid upid = {0};
  uint32_t level = set->view_level;
  if (pid == 0 || level >= MAX_LEVELS || level > FETCH(pid->level)) return 0;
  struct upid *numbers = __builtin_preserve_access_index(&pid->numbers[0]);
  read_kernel(&upid, sizeof upid, (char *)numbers + level * sizeof upid);
  return (uint64_t)upid.ns == set->view ? (uint32_t)upid.nr : 0;
}

/* Whether `leader` is the helper; then its namespace is the one that pids are told of. */
INLINE int is_helper(struct ebpf_settings *set, struct task_struct *leader) {
  struct pid *pid = FETCH(leader->thread_pid);
  uint32_t level = FETCH(pid->level);
  struct upid upid = {0};
  if (level >= MAX_LEVELS) return 0;
  struct upid *numbers = __builtin_preserve_access_index(&pid->numbers[0]);
  read_kernel(&upid, sizeof upid, (char *)numbers + level * sizeof upid);
  if ((uint32_t)upid.nr != set->seed_pid || FETCH(upid.ns->ns.inum) != set->seed_namespace) return 0;
  set->view = (uint64_t)upid.ns;
  set->view_level = level;
  set->seed_pid = 0;
  return 1;
}

SECTION("tp_btf/sched_process_fork")
int on_fork(uint64_t *arguments) {
  struct task_struct *parent = (void *)arguments[0], *child = (void *)arguments[1];
  uint32_t above = FETCH(parent->tgid), pid = FETCH(child->tgid);
  struct ebpf_settings *set = get_settings();
  struct ebpf_process made = {0};
  if (set == 0 || FETCH(child->pid) != (int)pid) return 0;
  struct ebpf_process *known = map_find(&processes, &above);
  if (known != 0) {
    made.exec = known->exec;
    made.parent = known->parent;
    made.depth = known->depth;
  } else if (set->seed_pid == 0 || !is_helper(set, FETCH(parent->group_leader)) || set->cgroup != 0) return 0;
  /* All that it does would be missing. */
  if (map_set(&processes, &pid, &made, 0)) __sync_fetch_and_add(&set->lost, 1);
  return 0;
}

INLINE int is_in_cgroup(struct ebpf_settings *set) {
  for (int level = 0; level < MAX_CGROUPS; level++) {
    uint64_t cgroup = ancestor_cgroup(level);
    if (cgroup == set->cgroup) return 1;
    if (cgroup == 0) return 0;
  }
  return 0;
}

/*
 * Memory for one event. Not one for each processor: a program may be interrupted by another one's execution in the middle.
 * There are twice as many as processors.
 */
INLINE struct ebpf_room *take_room(struct ebpf_settings *set) {
  for (uint32_t i = 0; i < ROOM_TRIES; i++) {
    uint32_t index = (current_cpu() * 2 + i) % set->rooms;
    struct ebpf_room *room = map_find(&rooms, &index);
    if (room == 0) continue;
    if (__sync_lock_test_and_set(&room->taken, 1) == 0) return room;
  }
  return 0;
}

/*
 * Where text goes on that may reach up to `end`; or NULL. That number is read from memory each time, about which whoever
 * checks this program knows nothing: so it need not follow how each part's length adds to the next.
 */
INLINE char *text_at(struct ebpf_room *room, uint32_t end) {
  uint64_t at = *(volatile uint64_t *)&room->at;
  KEEP(at);
  return at > end ? 0 : room->text + at;
}

/* Adds the names of a path, from the last to the first, across mounts. */
INLINE void put_path(struct ebpf_room *room, uint32_t end, struct vfsmount *on, struct dentry *entry, uint32_t cut) {
  for (int i = 0; i < MAX_STEPS; i++) {
    struct dentry *parent = FETCH(entry->d_parent);
    if (entry == FETCH(on->mnt_root)) {
      struct mount *mount = (void *)((char *)on - __builtin_preserve_field_info(((struct mount *)0)->mnt, 0));
      struct mount *above = FETCH(mount->mnt_parent);
      if (above == mount) return;
      entry = FETCH(mount->mnt_mountpoint);
      on = __builtin_preserve_access_index(&above->mnt);
      continue;
    }
    char *text = text_at(room, end - EBPF_NAME_ROOM);
    if (text == 0) break;
    long length = read_kernel_text(text, EBPF_NAME_ROOM, FETCH(entry->d_name.name));
    if (length <= 0) break;
    room->at += (uint64_t)length;
    /* Something without a place, such as a program in memory. */
    if (entry == parent) return;
    entry = parent;
  }
  room->event.flags |= cut;
}

/* By page: one that is not there must not hide those before it. */
INLINE void put_argv(struct ebpf_room *room, struct mm_struct *mm) {
  uint64_t from = FETCH(mm->arg_start), end = FETCH(mm->arg_end);
  if (end - from > EBPF_ARGV_ROOM) {
    end = from + EBPF_ARGV_ROOM;
    room->event.flags |= EBPF_TRUNCATED;
  }
  for (int i = 0; i < EBPF_ARGV_ROOM / PAGE + 1; i++) {
    uint64_t part = PAGE - (from & (PAGE - 1));
    if (part > end - from) part = end - from;
    if (part == 0) return;
    char *text = text_at(room, EBPF_TEXT_ROOM - PAGE);
    KEEP(part);
    if (text == 0 || part > PAGE || read_user(text, (uint32_t)part, (void *)from)) break;
    room->at += part;
    from += part;
  }
  room->event.flags |= EBPF_TRUNCATED;
}

INLINE void fill(struct ebpf_room *room, struct task_struct *task, struct linux_binprm *program) {
  struct ebpf_event *event = &room->event;
  struct fs_struct *fs = FETCH(task->fs);
  struct mm_struct *mm = FETCH(task->mm);
  struct dentry *cwd = FETCH(fs->pwd.dentry);
  struct file *file = FETCH(mm->exe_file);
  enum { FIRST_END = EBPF_PATH_ROOM + EBPF_NAME_ROOM, SECOND_END = 2 * FIRST_END };
  if (FETCH(cwd->d_hash.pprev) == 0 && cwd != FETCH(cwd->d_parent)) event->flags |= EBPF_CWD_DELETED;
  room->at = 0;
  put_path(room, FIRST_END, FETCH(fs->pwd.mnt), cwd, EBPF_CWD_CUT);
  event->cwd_length = (uint32_t)room->at;
  put_path(room, SECOND_END, FETCH(file->f_path.mnt), FETCH(file->f_path.dentry), EBPF_PROGRAM_CUT);
  event->program_length = (uint32_t)room->at - event->cwd_length;
  const char *name = FETCH(program->filename);
  event->name_length = 0;
  if (name != FETCH(program->interp)) {
    event->flags |= EBPF_SCRIPT;
    char *text = text_at(room, SECOND_END);
    long length = text == 0 ? 0 : read_kernel_text(text, EBPF_PATH_ROOM, name);
    if (length > 0) {
      event->name_length = (uint32_t)length;
      room->at += (uint64_t)length;
    }
  }
  uint32_t before = (uint32_t)room->at;
  put_argv(room, mm);
  event->argv_length = (uint32_t)room->at - before;
}

SECTION("tp_btf/sched_process_exec")
int on_exec(uint64_t *arguments) {
  struct task_struct *task = (void *)arguments[0];
  uint32_t pid = FETCH(task->tgid);
  struct ebpf_settings *set = get_settings();
  if (set == 0) return 0;
  struct ebpf_process *process = map_find(&processes, &pid);
  if (process == 0) {
    struct ebpf_process made = {0};
    if (set->cgroup == 0 || !is_in_cgroup(set)) return 0;
    map_set(&processes, &pid, &made, 0);
    process = map_find(&processes, &pid);
  }
  struct ebpf_room *room = process == 0 ? 0 : take_room(set);
  if (room == 0) {
    __sync_fetch_and_add(&set->lost, 1);
    return 0;
  }
  struct ebpf_event *event = &room->event;
  struct task_struct *parent = FETCH(task->real_parent);
  event->time_ns = monotonic_ns();
  event->kind = EBPF_EXEC;
  event->flags = 0;
  event->pid = pid_of(set, task);
  event->ppid = pid_of(set, FETCH(parent->group_leader));
  event->exec = __sync_fetch_and_add(&set->last_exec, 1) + 1;
  event->replaces = process->executed ? process->exec : 0;
  event->parent = process->executed ? process->parent : process->exec;
  event->depth = process->executed || process->exec == 0 ? process->depth : process->depth + 1;
  event->status = 0;
  fill(room, task, (void *)arguments[2]);
  uint64_t length = *(volatile uint64_t *)&room->at;
  KEEP(length);
  if (length > EBPF_TEXT_ROOM) length = EBPF_TEXT_ROOM;
  long failed;
  put(set, event, sizeof *event + length, &failed);
  /* One that was lost did not happen, for what comes after it: nothing refers to an execution that nobody knows. */
  if (!failed) {
    process->exec = event->exec;
    process->parent = event->parent;
    process->depth = event->depth;
    process->executed = 1;
  }
  __sync_lock_test_and_set(&room->taken, 0);
  return 0;
}

SECTION("tp_btf/sched_process_exit")
int on_exit(uint64_t *arguments) {
  struct task_struct *task = (void *)arguments[0], *leader = FETCH(task->group_leader);
  uint32_t pid = FETCH(task->tgid);
  struct signal_struct *signal = FETCH(task->signal);
  struct ebpf_settings *set = get_settings();
  struct ebpf_process *process = map_find(&processes, &pid);
  /* The last of its threads. */
  if (set == 0 || process == 0 || FETCH(signal->live.counter) != 0) return 0;
  uint32_t exec = process->executed ? process->exec : 0;
  /* Two threads that end at once both find none left. */
  if (map_remove(&processes, &pid)) return 0;
  if (exec != 0) {
    struct ebpf_event event = {.time_ns = monotonic_ns(), .kind = EBPF_EXIT, .exec = exec};
    event.pid = pid_of(set, leader);
    event.status = (uint32_t)(FETCH(signal->flags) & SIGNAL_GROUP_EXIT ? FETCH(signal->group_exit_code)
                                                                        : FETCH(leader->exit_code));
    long failed;
    put(set, &event, sizeof event, &failed);
  }
  return 0;
}
