/* Builds the BPF program from the table of system calls. See filter.h. */
#define _GNU_SOURCE
#include "filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "foreign.h"
#include "newer-calls.h"
#include "subvolumes.h"
#include "syscalls.h"

#if defined __x86_64__
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "no table of system calls for this architecture"
#endif

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

enum { MAX_INSTRUCTIONS = 512, MAX_KINDS = 16 };

struct program {
  struct sock_filter code[MAX_INSTRUCTIONS];
  unsigned short length;
};

static void add(struct program *program, struct sock_filter instruction) {
  program->code[program->length++] = instruction;
}

static void load(struct program *program, size_t offset) {
  add(program, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offset));
}

static void answer(struct program *program, unsigned action) {
  add(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

/* The low half of an argument; both architectures are little-endian. */
static size_t argument(int index) { return offsetof(struct seccomp_data, args) + (size_t)index * 8; }

static const unsigned opens_for_writing = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC;

/* Opening is looked at only when it may change something. */
static void add_open(struct program *program, int number, int flags_argument) {
  add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 4));
  load(program, argument(flags_argument));
  add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, opens_for_writing, 0, 1));
  answer(program, SECCOMP_RET_USER_NOTIF);
  answer(program, SECCOMP_RET_ALLOW);
}

/* A call of many kinds is looked at when the argument that says which one has one of these values. */
static void add_kinds(struct program *program, int number, int kind_argument, const unsigned *kinds, size_t count) {
  unsigned char left = (unsigned char)count;
  add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, (unsigned char)(left + 3)));
  load(program, argument(kind_argument));
  while (left-- > 0) add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, *kinds++, left, left == 0));
  answer(program, SECCOMP_RET_USER_NOTIF);
  answer(program, SECCOMP_RET_ALLOW);
}

/* Those that set attributes, which have other numbers elsewhere, and those for subvolumes. */
static void add_ioctl(struct program *program, int number, unsigned set_flags) {
  unsigned kinds[MAX_KINDS] = {set_flags, FS_IOC_FSSETXATTR};
  size_t count = 2;
  for (size_t i = 0; i < subvolume_kind_count; i++) kinds[count++] = subvolume_kinds[i];
  add_kinds(program, number, 1, kinds, count);
}

static void add_call(struct program *program, int number, unsigned action) {
  add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1));
  answer(program, action);
}

#ifdef __x86_64__
static void add_other_architecture(struct program *program, bool io_uring, bool looks) {
  load(program, offsetof(struct seccomp_data, nr));
  for (size_t i = 0; looks && i < foreign_look_count; i++) add_call(program, foreign_looks[i].number, SECCOMP_RET_USER_NOTIF);
  for (size_t i = 0; i < foreign_open_count; i++) {
    if (looks) add_call(program, foreign_opens[i].number, SECCOMP_RET_USER_NOTIF);
    else add_open(program, foreign_opens[i].number, foreign_opens[i].native == __NR_open ? 1 : 2);
  }
  add_ioctl(program, FOREIGN_IOCTL, FOREIGN_SETFLAGS);
  add_kinds(program, FOREIGN_SOCKETCALL, 0, (unsigned[]){FOREIGN_BIND}, 1);
  for (size_t i = 0; i < foreign_change_count; i++) add_call(program, foreign_changes[i].number, SECCOMP_RET_USER_NOTIF);
  if (!io_uring) add_call(program, __NR_io_uring_setup, SECCOMP_RET_ERRNO | ENOSYS);
  answer(program, SECCOMP_RET_ALLOW);
}
#else
static void add_other_architecture(struct program *program, bool io_uring, bool looks) {
  (void)io_uring;
  (void)looks;
  answer(program, SECCOMP_RET_USER_NOTIF);
}
#endif

/* A call that looks, unless it looks at an open file: that was told when it was opened. */
static void add_look(struct program *program, const struct rule *rule) {
  bool by_descriptor = rule->number == __NR_newfstatat || rule->number == __NR_statx;
  if (!by_descriptor) {
    add_call(program, rule->number, SECCOMP_RET_USER_NOTIF);
    return;
  }
  add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)rule->number, 0, 4));
  load(program, argument(rule->flags));
  add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, AT_EMPTY_PATH, 0, 1));
  answer(program, SECCOMP_RET_ALLOW);
  answer(program, SECCOMP_RET_USER_NOTIF);
}

static void build(struct program *program, bool io_uring, bool looks) {
  /* Room for the jump over the other architecture's part, whose length is known only afterwards. */
  load(program, offsetof(struct seccomp_data, arch));
  size_t jump = program->length;
  add(program, (struct sock_filter){0});
  add_other_architecture(program, io_uring, looks);
  program->code[jump] =
      (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, (unsigned char)(program->length - jump - 1), 0);
  load(program, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
  add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1));
  answer(program, SECCOMP_RET_USER_NOTIF);
  if (looks) add_call(program, __NR_open, SECCOMP_RET_USER_NOTIF);
  else add_open(program, __NR_open, 1);
#endif
  if (looks) add_call(program, __NR_openat, SECCOMP_RET_USER_NOTIF);
  else add_open(program, __NR_openat, 2);
  if (!looks) add_open(program, __NR_open_by_handle_at, 2);
  for (size_t i = 0; looks && i < looking_rule_count; i++) add_look(program, &looking_rules[i]);
  add_ioctl(program, __NR_ioctl, FS_IOC_SETFLAGS);
  for (size_t i = 0; i < rule_count; i++) {
    int number = rules[i].number;
#ifdef __x86_64__
    if (number == __NR_open) continue;
#endif
    if (number != __NR_openat && number != __NR_ioctl) add_call(program, number, SECCOMP_RET_USER_NOTIF);
  }
  if (!io_uring) add_call(program, __NR_io_uring_setup, SECCOMP_RET_ERRNO | ENOSYS);
  answer(program, SECCOMP_RET_ALLOW);
}

static int install(struct program *program) {
  struct sock_fprog fprog = {.len = program->length, .filter = program->code};
  return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                      SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &fprog);
}

int filter_install(bool io_uring, bool looks, bool *privileges_off) {
  struct program program = {.length = 0};
  build(&program, io_uring, looks);
  *privileges_off = false;
  int listener = install(&program);
  if (listener >= 0 || errno != EACCES) return listener;
  /* Without the right to filter, only a process that can gain no privileges may. */
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  *privileges_off = true;
  return install(&program);
}
