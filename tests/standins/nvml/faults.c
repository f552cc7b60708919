/*
 * What goes wrong, and when.
 */
#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE
#include "faults.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "text.h"

/* CLOCK_MONOTONIC counts from the machine's start, so processes can compare it. */
static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static bool has_windows(const struct scenario *scenario)
{
    for (size_t i = 0; i < scenario->fault_count; i++)
        if (scenario->faults[i].window != WINDOW_ALWAYS)
            return true;
    return false;
}

static int open_state(const char *path)
{
    int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);

    if (descriptor < 0 || flock(descriptor, LOCK_EX) != 0)
        die("%s: %s", path, strerror(errno));
    /* Root and an unprivileged user may share a scenario; whoever owns the file opens it to both. */
    (void)fchmod(descriptor, 0666);
    return descriptor;
}

struct occasion occasion_of_init(const struct scenario *scenario)
{
    struct occasion occasion = {1, 0};
    char text[64] = "";
    int descriptor, length;

    if (!has_windows(scenario))
        return occasion;
    descriptor = open_state(scenario->state_path);
    if (pread(descriptor, text, sizeof text - 1, 0) > 0
        && sscanf(text, "%" SCNu64 " %" SCNu64, &occasion.init_number, &occasion.first_init_ms) == 2)
        occasion.init_number++;
    else
        occasion = (struct occasion){1, now_ms()};
    length = snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64 "\n", occasion.init_number,
                      occasion.first_init_ms);
    if (pwrite(descriptor, text, (size_t)length, 0) != length)
        die("%s: %s", scenario->state_path, strerror(errno));
    close(descriptor);
    return occasion;
}

static bool in_window(const struct fault *fault, const struct occasion *occasion)
{
    switch (fault->window) {
    case WINDOW_FIRST_INITS:
        return occasion->init_number <= fault->window_size;
    case WINDOW_FIRST_MS:
        return now_ms() - occasion->first_init_ms < fault->window_size;
    default:
        return true;
    }
}

static bool concerns_call(const struct fault *fault, enum call call)
{
    if (fault->kind == FAULT_NO_GPUS)
        return false;
    /* The two ways to initialise are one to whoever writes a scenario: pynvml calls the newer one. */
    if (call == CALL_nvmlInitWithFlags && fault->call == CALL_nvmlInit_v2)
        return true;
    return fault->call == CALL_ANY || fault->call == call;
}

/* What befalls a GPU befalls its MIG instances too. */
static bool concerns_device(const struct fault *fault, const struct device *device)
{
    if (fault->device == NULL)
        return true;
    return device != NULL && (fault->device == device || fault->device == device->parent);
}

static void sleep_ms(unsigned milliseconds)
{
    struct timespec rest = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000000};

    while (nanosleep(&rest, &rest) != 0 && errno == EINTR)
        ;
}

_Noreturn static void hang(bool hard)
{
    /* A call that hangs in the kernel heeds no signal. Blocking them all comes as near to that as a
     * program can get by itself: only SIGKILL is left. */
    if (hard) {
        sigset_t all;

        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, NULL);
    }
    for (;;)
        pause();
}

_Noreturn static void crash(void)
{
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
    abort();
}

nvml_status apply_faults(const struct scenario *scenario, const struct occasion *occasion, enum call call,
                         const struct device *device)
{
    for (size_t i = 0; i < scenario->fault_count; i++) {
        const struct fault *fault = &scenario->faults[i];

        if (!concerns_call(fault, call) || !concerns_device(fault, device) || !in_window(fault, occasion))
            continue;
        switch (fault->kind) {
        case FAULT_FAIL:
            return fault->status;
        case FAULT_SLEEP:
            sleep_ms(fault->milliseconds);
            break;
        case FAULT_HANG:
            hang(false);
        case FAULT_HANG_HARD:
            hang(true);
        case FAULT_CRASH:
            crash();
        case FAULT_NO_GPUS:
            break;
        }
    }
    return NVML_SUCCESS;
}

bool no_gpus(const struct scenario *scenario, const struct occasion *occasion)
{
    for (size_t i = 0; i < scenario->fault_count; i++)
        if (scenario->faults[i].kind == FAULT_NO_GPUS && in_window(&scenario->faults[i], occasion))
            return true;
    return false;
}
