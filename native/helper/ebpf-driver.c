/*
 * The driver by programs in the kernel: executions and ends, for root, without stopping anything and without any effect on
 * the command; no changes of files, and nothing can be held. See drivers.h. Watches the command, or a control group.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/bpf.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drivers.h"
#include "ebpf-frames.h"

enum {
  RING_BYTES = 8 * 1024 * 1024,
  /* Events wait for company so long: being woken for each costs what is watched. */
  COLLECT_MS = 20,
  WAKE_PART = 4, /* a ring that is full to one part in so many is not waited for */
};

static struct ebpf ebpf;
static struct frame frame;
static struct stream *stream;
static uint64_t lost;
/* The thread below and the main loop both read the ring. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int probe(void) {
  bool works = ebpf_load(&ebpf, RING_BYTES) && ebpf_attach(&ebpf);
  printf("%s\n", works ? "works, without changes of files, and nothing can be held" : ebpf_reason());
  if (works) ebpf_unload(&ebpf);
  return works ? 0 : 1;
}

/* The number of a control group (version 2), by its directory; 0 with errno. */
static uint64_t cgroup_number(const char *directory) {
  struct statfs system;
  struct stat stat_;
  if (statfs(directory, &system) != 0 || stat(directory, &stat_) != 0) return 0;
  if (system.f_type != CGROUP2_SUPER_MAGIC || !S_ISDIR(stat_.st_mode)) {
    errno = EINVAL;
    return 0;
  }
  return stat_.st_ino;
}

/* The errno alone would not tell much, and the terminal is still ours. */
static int refuse(int error, const char *why) {
  fprintf(stderr, "savepoint-helper: ebpf: %s\n", why);
  return error;
}

static int prepare(const struct driver_options *options) {
  struct stat namespace;
  uint64_t cgroup = options->cgroup == NULL ? 0 : cgroup_number(options->cgroup);
  if (options->cgroup != NULL && cgroup == 0) return refuse(errno, "this is no control group (version 2)");
  if (stat("/proc/self/ns/pid", &namespace) != 0) return refuse(errno, "there is no /proc");
  uint32_t ring_bytes = options->ring_bytes == 0 ? RING_BYTES : options->ring_bytes;
  if (!ebpf_load(&ebpf, ring_bytes)) return refuse(EPERM, ebpf_reason());
  ebpf.settings->wake_bytes = ring_bytes / WAKE_PART;
  ebpf.settings->cgroup = cgroup;
  ebpf.settings->seed_namespace = (uint32_t)namespace.st_ino;
  ebpf.settings->seed_pid = (uint32_t)getpid();
  if (!ebpf_attach(&ebpf)) return refuse(EPERM, ebpf_reason());
  if (cgroup == 0) return 0; /* the next fork is the command's */
  /* One that tells the programs who we are, and whose pids they are to tell. */
  pid_t pid = fork();
  if (pid == 0) _exit(0);
  if (pid < 0 || waitpid(pid, NULL, 0) != pid) return errno;
  return 0;
}

static void tell_lost(void) {
  uint64_t now = __atomic_load_n(&ebpf.settings->lost, __ATOMIC_ACQUIRE);
  if (now == lost) return;
  frame_begin(&frame, FRAME_LOST, 0, 0);
  frame_flag(&frame, LOST_OVERFLOW);
  frame_number(&frame, FIELD_NUMBER, (uint32_t)(now - lost));
  stream_put(stream, &frame);
  lost = now;
}

/* Tells all that is in the ring. The order of what is done here is the kernel's rule for rings. */
static void settle(void) {
  pthread_mutex_lock(&lock);
  unsigned long at = __atomic_load_n(ebpf.read_to, __ATOMIC_ACQUIRE);
  for (;;) {
    unsigned long end = __atomic_load_n(ebpf.written_to, __ATOMIC_ACQUIRE);
    if (at >= end) break;
    const uint8_t *record = ebpf.ring + (at & (ebpf.ring_bytes - 1));
    uint32_t head = __atomic_load_n((const uint32_t *)(const void *)record, __ATOMIC_ACQUIRE);
    if (head & BPF_RINGBUF_BUSY_BIT) break;
    uint32_t length = head & ~(uint32_t)(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
    if ((head & BPF_RINGBUF_DISCARD_BIT) == 0)
      ebpf_tell(stream, &frame, (const struct ebpf_event *)(const void *)(record + BPF_RINGBUF_HDR_SZ), length);
    at += (length + BPF_RINGBUF_HDR_SZ + 7) & ~7u;
    __atomic_store_n(ebpf.read_to, at, __ATOMIC_SEQ_CST);
  }
  tell_lost();
  pthread_mutex_unlock(&lock);
}

static void *loop(void *unused) {
  int epoll = epoll_create1(EPOLL_CLOEXEC);
  /* By edges: the programs wake us for the first event after we have read all, and again when the ring fills up. */
  struct epoll_event event = {.events = EPOLLIN | EPOLLET};
  epoll_ctl(epoll, EPOLL_CTL_ADD, ebpf.ring_map, &event);
  for (;;) {
    if (epoll_wait(epoll, &event, 1, -1) < 0 && errno != EINTR) return unused;
    epoll_wait(epoll, &event, 1, COLLECT_MS);
    settle();
  }
}

static int begin(const struct session *session) {
  stream = session->stream;
  pthread_t thread;
  return pthread_create(&thread, NULL, loop, NULL);
}

static void release(uint64_t key) { (void)key; }

const struct driver ebpf_driver = {
    .name = "ebpf", .probe = probe, .prepare = prepare, .begin = begin, .settle = settle, .release = release};
