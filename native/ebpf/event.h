/* What the programs in the kernel (exec.bpf.c) and the helper (native/helper/ebpf.c) tell each other. */
#ifndef SAVEPOINT_EBPF_EVENT_H
#define SAVEPOINT_EBPF_EVENT_H

#include <stdint.h>

enum {
  EBPF_PATH_ROOM = 4096,
  EBPF_NAME_ROOM = 256,
  EBPF_ARGV_ROOM = 32 * 1024,
  /* Two paths, the name that was executed, all arguments; each path may run over by one name. */
  EBPF_TEXT_ROOM = 3 * (EBPF_PATH_ROOM + EBPF_NAME_ROOM) + EBPF_ARGV_ROOM,
  EBPF_PROCESSES = 32768, /* alive at the same time */
};

enum ebpf_kind { EBPF_EXEC = 1, EBPF_EXIT = 2 };

enum ebpf_flag {
  EBPF_TRUNCATED = 1,   /* not all of argv is here */
  EBPF_SCRIPT = 2,      /* PROGRAM is the interpreter, and argv is the interpreter's */
  EBPF_CWD_DELETED = 4, /* the directory has no name any more */
  EBPF_CWD_CUT = 8,     /* the beginning of the path is missing */
  EBPF_PROGRAM_CUT = 16,
};

struct ebpf_event {
  uint64_t time_ns; /* of the monotonic clock */
  uint32_t kind, flags;
  uint32_t pid, ppid; /* as the helper's own namespace has them; 0: it has none */
  uint32_t exec, parent, depth, replaces;
  uint32_t status; /* of EXIT, as wait(2) has it */
  /* Of the texts that follow, in this order. Paths are names with a NUL behind each, from the last to the first. */
  uint32_t cwd_length, program_length, name_length, argv_length;
};

/* One element of the map `settings`, which both sides can write. */
struct ebpf_settings {
  /* From the helper: its own pid and the inode number of its namespace, until the fork that it is known by has been seen. */
  uint32_t seed_pid, seed_namespace;
  uint64_t cgroup;     /* watch this one and those below it; 0: watch what the fork makes */
  uint64_t wake_bytes; /* from so much on in the ring the helper is woken again */
  uint32_t rooms;      /* how many there are */
  uint32_t unused;
  /* From the programs. */
  uint64_t view; /* the helper's pid namespace */
  uint32_t view_level;
  uint32_t last_exec;
  uint64_t lost; /* events that found no room */
};

/* An element of the map `processes`, by pid as the kernel itself has it. */
struct ebpf_process {
  uint32_t exec, parent, depth;
  uint32_t executed; /* `exec` is its own, not that of the process which forked it */
};

/* An element of the map `rooms`: an event while it is made. */
struct ebpf_room {
  uint64_t taken;
  uint64_t at; /* how much of the text is there */
  struct ebpf_event event;
  char text[EBPF_TEXT_ROOM];
};

#endif
