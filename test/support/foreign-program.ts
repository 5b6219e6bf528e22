/** A program in C that makes calls as 32-bit programs do. */

/** Its exit code where the kernel has no such calls. */
export const NO_FOREIGN_CALLS = 77

/** Makes the directory `made`, empties the file `old` and looks for `looked-for`, by `int 0x80`. */
export const foreignProgram = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
static char *path;
static long call(long number, const char *name, long second, long third) {
  strcpy(path, name);
#ifdef __x86_64__
  __asm__ volatile("int $0x80" : "+a"(number) : "b"(path), "c"(second), "d"(third) : "memory", "r8", "r9", "r10", "r11");
  return number;
#else
  return -38;
#endif
}
int main(void) {
  path = mmap((void *)0x10000000, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  long made = call(39, "made", 0700, 0);
  if (made != 0) return made == -38 ? ${NO_FOREIGN_CALLS} : 1;
  if (call(5, "old", O_WRONLY | O_TRUNC, 0) < 0) return 2;
  return call(33, "looked-for", 0, 0) == -2 ? 0 : 3;
}
`
