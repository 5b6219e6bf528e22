/** A program in C that makes calls as 32-bit programs do. */

/** Its exit code where the kernel has no such calls. */
export const NO_FOREIGN_CALLS = 77

/**
 * Makes the directory `made`, empties the file `old`, binds the socket `bound` and looks for `looked-for`, by `int 0x80`;
 * given an argument, executes /bin/mkdir to make that.
 */
export const foreignProgram = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
static char *path;
static unsigned *words; /* where 32-bit pointers reach */
static unsigned low(const void *at) { return (unsigned)(unsigned long)at; }
static long call(long number, const char *name, long second, long third) {
  if (name != path) strcpy(path, name);
#ifdef __x86_64__
  __asm__ volatile("int $0x80" : "+a"(number) : "b"(path), "c"(second), "d"(third) : "memory", "r8", "r9", "r10", "r11");
  return number;
#else
  return -38;
#endif
}
static int bind_socket(const char *name) {
  char *address = path + 1024;
  *(unsigned short *)address = AF_UNIX;
  strcpy(address + 2, name);
  words[0] = (unsigned)socket(AF_UNIX, SOCK_STREAM, 0);
  words[1] = low(address);
  words[2] = (unsigned)strlen(name) + 3;
  long number = 102;
#ifdef __x86_64__
  __asm__ volatile("int $0x80" : "+a"(number) : "b"(2L), "c"(words) : "memory", "r8", "r9", "r10", "r11");
#endif
  return (int)number;
}
static int make_by_program(const char *name) {
  char *argument = strcpy(path + 1024, name), *command = strcpy(path + 2000, "mkdir");
  words[0] = low(command);
  words[1] = low(argument);
  words[2] = 0;
  return (int)call(11, "/bin/mkdir", (long)words, 0);
}
int main(int count, char **arguments) {
  path = mmap((void *)0x10000000, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  words = (unsigned *)(path + 3072);
  long made = call(39, "made", 0700, 0);
  if (made != 0) return made == -38 ? ${NO_FOREIGN_CALLS} : 1;
  if (call(5, "old", O_WRONLY | O_TRUNC, 0) < 0) return 2;
  if (bind_socket("bound") != 0) return 4;
  if (call(33, "looked-for", 0, 0) != -2) return 3;
  return count > 1 ? make_by_program(arguments[1]) : 0;
}
`
