/* The least that a broker does for a message, with one thread and nothing else in the program: it receives
 * the message from one connection, writes and syncs it, sends it to another connection, sends the outcome to the
 * first, and receives the settlement of the second, which is written with the next message. Any broker with the same guarantees
 * makes these eight system calls, so its processor time is compared with this one's.
 *
 *   floor RATE MESSAGES FILE     one line of JSON: CPU seconds per million messages, and microseconds of a write with its sync
 *
 * The peers are a second process, whose time is not counted. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Bytes of a message of 1 KiB in its frame, as it comes and as it goes; of a disposition; of the records of both. */
enum { MESSAGE = 1083, DELIVERY = 1318, DISPOSITION = 30, RECORD = 1200, FILE_BYTES = 64 << 20 };

static void fail(const char *what) { perror(what); exit(1); }

static long nanoseconds(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void receive(int from, char *into, ssize_t bytes) {
  for (ssize_t got = 0; got < bytes;) {
    ssize_t count = read(from, into, bytes - got);
    if (count <= 0) fail("read");
    got += count;
  }
}

static void transmit(int to, const char *from, ssize_t bytes) {
  if (write(to, from, bytes) != bytes) fail("write");
}

static int dial(struct sockaddr_in *address) {
  int on = 1, made = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(made, (void *)address, sizeof *address)) fail("connect");
  setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return made;
}

/* Sends at its pace, and receives and settles each message. */
static void peers(struct sockaddr_in *address, long rate, long messages) {
  static char bytes[4096];
  int sender = dial(address), receiver = dial(address);
  long due = nanoseconds(CLOCK_MONOTONIC);
  for (long number = 0; number < messages; number++) {
    due += 1000000000L / rate;
    struct timespec at = {due / 1000000000L, due % 1000000000L};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
    transmit(sender, bytes, MESSAGE);
    receive(receiver, bytes, DELIVERY);
    transmit(receiver, bytes, DISPOSITION);
    receive(sender, bytes, DISPOSITION);
  }
  close(sender);
  close(receiver);
}

int main(int count, char **words) {
  if (count != 4) return fprintf(stderr, "floor RATE MESSAGES FILE\n"), 2;
  long rate = atol(words[1]), messages = atol(words[2]);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t length = sizeof address;
  int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
  if (bind(listener, (void *)&address, sizeof address) || listen(listener, 2)) fail("listen");
  getsockname(listener, (void *)&address, &length);

  /* The file is filled before, as segments of the log are. */
  static char bytes[1 << 20];
  int file = open(words[3], O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (file < 0) fail(words[3]);
  for (int part = 0; part < FILE_BYTES / (1 << 20); part++) transmit(file, bytes, sizeof bytes);
  if (fsync(file)) fail("fsync");

  pid_t child = fork();
  if (child == 0) return peers(&address, rate, messages), 0;
  int sender = accept4(listener, NULL, NULL, SOCK_NONBLOCK), receiver = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
  setsockopt(sender, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(receiver, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  int events = epoll_create1(0), open_sockets = 2;
  int sockets[] = {sender, receiver};
  for (int which = 0; which < 2; which++) {
    struct epoll_event event = {EPOLLIN, {.fd = sockets[which]}};
    epoll_ctl(events, EPOLL_CTL_ADD, sockets[which], &event);
  }
  long cpu = nanoseconds(CLOCK_PROCESS_CPUTIME_ID), synced = 0;
  off_t at = 0;
  while (open_sockets > 0) {
    struct epoll_event ready;
    if (epoll_wait(events, &ready, 1, 10000) != 1) continue;
    ssize_t got = read(ready.data.fd, bytes, 8192);
    if (got == 0) open_sockets--;
    if (got < MESSAGE || ready.data.fd == receiver) continue;
    long began = nanoseconds(CLOCK_MONOTONIC);
    struct iovec record = {bytes, RECORD};
    if (pwritev(file, &record, 1, at) != RECORD || fdatasync(file)) fail("the file");
    synced += nanoseconds(CLOCK_MONOTONIC) - began;
    at = (at + RECORD) % (FILE_BYTES - RECORD);
    transmit(receiver, bytes, DELIVERY);
    transmit(sender, bytes, DISPOSITION);
  }
  cpu = nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
  wait(NULL);
  printf("{\"cpu_seconds_per_million\": %.2f, \"sync_microseconds\": %.0f}\n", cpu / 1e3 / messages, synced / 1e3 / messages);
  return 0;
}
