/** A program that writes a file by io_uring alone: no call of it names the file. `uring FILE TEXT`; 77 where the kernel has none. */
export const uringWriter = `
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct io_uring_params params;
static char *rings;
static struct io_uring_sqe *entries;
static int ring;

static int carry_out(const struct io_uring_sqe *entry) {
  unsigned *tail = (unsigned *)(rings + params.sq_off.tail), mask = *(unsigned *)(rings + params.sq_off.ring_mask);
  unsigned *array = (unsigned *)(rings + params.sq_off.array), *head = (unsigned *)(rings + params.cq_off.head);
  struct io_uring_cqe *results = (struct io_uring_cqe *)(rings + params.cq_off.cqes);
  unsigned at = *tail & mask;
  entries[at] = *entry;
  array[at] = at;
  __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
  if (syscall(__NR_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0) _exit(1);
  int result = results[*head & *(unsigned *)(rings + params.cq_off.ring_mask)].res;
  __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
  if (result < 0) _exit(1);
  return result;
}

int main(int count, char **words) {
  ring = (int)syscall(__NR_io_uring_setup, 4, &params);
  if (ring < 0) return 77;
  size_t size = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
  size_t other = params.sq_off.array + params.sq_entries * sizeof(unsigned);
  if (other > size) size = other;
  rings = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
  entries = mmap(NULL, params.sq_entries * sizeof *entries, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
  if (count != 3 || rings == MAP_FAILED || entries == MAP_FAILED || !(params.features & IORING_FEAT_SINGLE_MMAP)) return 1;
  struct io_uring_sqe opening = {.opcode = IORING_OP_OPENAT, .fd = AT_FDCWD, .addr = (uint64_t)(uintptr_t)words[1], .len = 0644, .open_flags = O_CREAT | O_TRUNC | O_WRONLY};
  int fd = carry_out(&opening);
  struct io_uring_sqe writing = {.opcode = IORING_OP_WRITE, .fd = fd, .addr = (uint64_t)(uintptr_t)words[2], .len = (uint32_t)strlen(words[2])};
  carry_out(&writing);
  return 0;
}
`
