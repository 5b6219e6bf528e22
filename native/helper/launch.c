/* Fork, filter, hand the listener over, wait for the word, execute. See launch.h. */
#define _GNU_SOURCE
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "filter.h"
#include "inherit.h"

/* What the child says before it waits. */
struct word {
  int error;
  bool privileges_off;
};

static bool send_word(int socket, const struct word *word, int descriptor) {
  struct iovec part = {.iov_base = (void *)word, .iov_len = sizeof *word};
  union {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
  } control = {0};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (descriptor >= 0) {
    message.msg_control = &control;
    message.msg_controllen = sizeof control;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL) == (ssize_t)sizeof *word;
}

static bool receive_word(int socket, struct word *word, int *descriptor) {
  struct iovec part = {.iov_base = word, .iov_len = sizeof *word};
  union {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
  } control = {0};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  *descriptor = -1;
  if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof *word) return false;
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  if (header != NULL && header->cmsg_type == SCM_RIGHTS) memcpy(descriptor, CMSG_DATA(header), sizeof *descriptor);
  return true;
}

static _Noreturn void run_child(const struct launch *options, int socket, int failure) {
  struct word word = {0};
  int listener = -1;
  if (options->filters) {
    listener = filter_install(options->io_uring, options->looks, &word.privileges_off);
    if (listener < 0) word.error = errno;
  }
  char go;
  /* Closed at the other end means that the helper is gone: nothing is executed unseen. */
  if (!send_word(socket, &word, listener) || word.error != 0 || read(socket, &go, 1) != 1) _exit(125);
  if (listener >= 0) close(listener);
  close(socket);
  sigprocmask(SIG_SETMASK, &options->signals, NULL);
  ignore_signals(options->ignored);
  limit_files(options->file_limit);
  close_closed_input();
  execvp(options->command[0], options->command);
  int error = errno;
  if (write(failure, &error, sizeof error) < 0) _exit(125);
  _exit(127);
}

int launch(const struct launch *options, struct launched *launched) {
  int sockets[2], pipes[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0 || pipe2(pipes, O_CLOEXEC) != 0) return errno;
  pid_t pid = fork();
  if (pid < 0) return errno;
  if (pid == 0) {
    close(sockets[0]);
    close(pipes[0]);
    run_child(options, sockets[1], pipes[1]);
  }
  close(sockets[1]);
  close(pipes[1]);
  /* Whoever waits for the end of a pipe that the command has must not wait for us. */
  close_inherited();
  struct word word;
  *launched = (struct launched){.pid = pid, .listener = -1, .go = sockets[0], .failure = pipes[0]};
  if (!receive_word(sockets[0], &word, &launched->listener)) return EPIPE;
  launched->privileges_off = word.privileges_off;
  return word.error;
}
