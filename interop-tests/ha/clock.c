// The date of one process, for tests: its CLOCK_REALTIME is ahead by the seconds that are in the file JITNEY_TEST_CLOCK, as a number of
// 8 bytes. With JITNEY_TEST_CLOCK_ALL the monotonic clock is, too. Loaded by LD_PRELOAD; see clock.py.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *ahead;
static int all;

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("JITNEY_TEST_CLOCK");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) abort();
  void *found = mmap(0, sizeof *ahead, PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (found == MAP_FAILED) abort();
  all = getenv("JITNEY_TEST_CLOCK_ALL") != 0;
  ahead = found;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  int failed = (int)syscall(SYS_clock_gettime, clock, time);
  if (!failed && ahead && (clock == CLOCK_REALTIME || (all && clock == CLOCK_MONOTONIC))) time->tv_sec += *ahead;
  return failed;
}
