/* A disk that fails, for one process: preloaded, it stands before the calls that write to a database's files.
 *
 * FAULTS says which fault, and from which call on:
 *   fsync:N      the N-th sync and all after it fail with EIO
 *   database:N   the same, but only syncs of the database file itself count and fail: those of checkpoints
 *   full:N:M     from the N-th write on, M writes fail with ENOSPC, and then there is space again
 *   write:N:M    from the N-th write on, M writes fail with EIO
 *   short:N:M    from the N-th write on, M writes write only a part of what they should
 * The first call that fails says "> fault" on the standard output, in its place among what the process says.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_long syncs, writes;
static atomic_int told;
static char kind[16];
static long from, count;

__attribute__((constructor)) static void begin(void) {
    const char *faults = getenv("FAULTS");
    count = 1;
    if (faults != NULL) sscanf(faults, "%15[a-z]:%ld:%ld", kind, &from, &count);
}

static int is_kind(const char *name) { return strcmp(kind, name) == 0; }

/* Whether the file is a part of the database: its name tells. */
static int is_ours(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    if (is_kind("database")) return length > 9 && strcmp(path + length - 9, "faulty.db") == 0;
    return strstr(path, "faulty.db") != NULL && strstr(path, ".lock") == NULL;
}

static void tell(void) {
    if (atomic_exchange(&told, 1) == 0) syscall(SYS_write, 1, "\n> fault\n", 9);
}

static int is_due(atomic_long *counter, long many) {
    long call = atomic_fetch_add(counter, 1) + 1;
    int due = from > 0 && call >= from && (many < 0 || call < from + many);
    if (due) tell();
    return due;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int sync_fails(int fd) {
    if ((!is_kind("fsync") && !is_kind("database")) || !is_ours(fd) || !is_due(&syncs, -1)) return 0;
    errno = EIO;
    return 1;
}

int fsync(int fd) { return sync_fails(fd) ? -1 : REAL(fsync)(fd); }
int fdatasync(int fd) { return sync_fails(fd) ? -1 : REAL(fdatasync)(fd); }

/* -1: it fails; otherwise how much is to be written. */
static ssize_t allowed(int fd, size_t size) {
    if ((!is_kind("full") && !is_kind("write") && !is_kind("short")) || !is_ours(fd)) return size;
    if (!is_due(&writes, count)) return size;
    if (is_kind("short")) return size > 1 ? size / 2 : size;
    errno = is_kind("full") ? ENOSPC : EIO;
    return -1;
}

ssize_t write(int fd, const void *bytes, size_t size) {
    ssize_t some = allowed(fd, size);
    return some < 0 ? -1 : REAL(write)(fd, bytes, some);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at) {
    ssize_t some = allowed(fd, size);
    return some < 0 ? -1 : REAL(pwrite)(fd, bytes, some, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t at) {
    ssize_t some = allowed(fd, size);
    return some < 0 ? -1 : REAL(pwrite64)(fd, bytes, some, at);
}

/* Space that is asked for ahead of writing is refused too when there is none. */
static int is_full(int fd) {
    if (!is_kind("full") || allowed(fd, 1) >= 0) return 0;
    errno = ENOSPC;
    return 1;
}

int ftruncate(int fd, off_t size) { return is_full(fd) ? -1 : REAL(ftruncate)(fd, size); }
int ftruncate64(int fd, off64_t size) { return is_full(fd) ? -1 : REAL(ftruncate64)(fd, size); }
int posix_fallocate(int fd, off_t at, off_t size) {
    return is_full(fd) ? ENOSPC : REAL(posix_fallocate)(fd, at, size);
}
int posix_fallocate64(int fd, off64_t at, off64_t size) {
    return is_full(fd) ? ENOSPC : REAL(posix_fallocate64)(fd, at, size);
}
int fallocate(int fd, int mode, off_t at, off_t size) {
    return is_full(fd) ? -1 : REAL(fallocate)(fd, mode, at, size);
}
