/*
 * What holds between nvmlInit and nvmlShutdown.
 *
 * The GPUs that can be seen are settled when the library is initialised, as in the real one: a caller
 * that saw none must shut down and initialise again to see more.
 */
#define _POSIX_C_SOURCE 200809L
#include "session.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "faults.h"
#include "text.h"

static struct {
    pthread_mutex_t lock;
    unsigned references;
    const struct scenario *scenario;
    struct occasion occasion;
    const struct device **visible;
    unsigned visible_count;
} session = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char *scenario_path(void)
{
    const char *path = getenv("STANDIN_NVML_SCENARIO");

#ifdef STANDIN_DEFAULT_SCENARIO
    if (path == NULL)
        return STANDIN_DEFAULT_SCENARIO;
#endif
    if (path == NULL)
        die("STANDIN_NVML_SCENARIO is not set");
    return path;
}

/* Opens as the real library does, which is what a device cgroup sees and refuses. */
static bool may_open(const struct device *device)
{
    for (size_t i = 0; i < device->node_count; i++) {
        int descriptor = open(device->nodes[i], O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

        if (descriptor >= 0)
            close(descriptor);
        else if (errno == EPERM || errno == EACCES)
            return false;
    }
    return true;
}

static void find_permissions(const struct scenario *scenario)
{
    for (size_t i = 0; scenario->open_nodes != OPEN_NODES_NO && i < scenario->device_count; i++)
        scenario->devices[i]->not_permitted = !may_open(scenario->devices[i]);
}

static void find_visible(const struct scenario *scenario)
{
    session.visible = NULL;
    session.visible_count = 0;
    if (no_gpus(scenario, &session.occasion))
        return;
    for (size_t i = 0; i < scenario->device_count; i++) {
        const struct device *device = scenario->devices[i];

        if (device->parent != NULL)
            continue;
        if (device->not_permitted && scenario->open_nodes == OPEN_NODES_HIDE)
            continue;
        session.visible = grow(session.visible, session.visible_count, sizeof(struct device *));
        session.visible[session.visible_count++] = device;
    }
}

nvml_status session_begin(enum call call)
{
    const struct scenario *scenario;
    struct occasion occasion;
    nvml_status status;

    pthread_mutex_lock(&session.lock);
    if (session.references > 0) {
        session.references++;
        pthread_mutex_unlock(&session.lock);
        return enter(call);
    }
    pthread_mutex_unlock(&session.lock);

    /* Outside the lock: a hanging initialisation must not hold up other threads' calls. */
    scenario = scenario_read(scenario_path());
    occasion = occasion_of_init(scenario);
    status = apply_faults(scenario, &occasion, call, NULL);
    if (status != NVML_SUCCESS)
        return status;

    pthread_mutex_lock(&session.lock);
    if (session.references++ == 0) {
        session.occasion = occasion;
        find_permissions(scenario);
        find_visible(scenario);
        session.scenario = scenario;
    }
    pthread_mutex_unlock(&session.lock);
    return NVML_SUCCESS;
}

nvml_status session_end(void)
{
    nvml_status status = enter(CALL_nvmlShutdown);

    if (status != NVML_SUCCESS)
        return status;
    pthread_mutex_lock(&session.lock);
    if (--session.references == 0)
        session.scenario = NULL;
    pthread_mutex_unlock(&session.lock);
    return NVML_SUCCESS;
}

const struct scenario *session_scenario(void)
{
    return session.scenario;
}

nvml_status enter(enum call call)
{
    return enter_device(call, NULL);
}

nvml_status enter_device(enum call call, const struct device *device)
{
    const struct scenario *scenario = session.scenario;

    if (scenario == NULL)
        return NVML_ERROR_UNINITIALIZED;
    return apply_faults(scenario, &session.occasion, call, device);
}

/* Looked up, never followed unchecked: a handle may be left over from before a shutdown. */
static bool is_handle(const struct scenario *scenario, const struct device *handle)
{
    for (size_t i = 0; i < scenario->device_count; i++)
        if (scenario->devices[i] == handle)
            return true;
    return false;
}

nvml_status enter_handle(enum call call, const struct device *handle)
{
    const struct scenario *scenario = session.scenario;

    if (scenario == NULL)
        return NVML_ERROR_UNINITIALIZED;
    if (!is_handle(scenario, handle))
        return NVML_ERROR_INVALID_ARGUMENT;
    return apply_faults(scenario, &session.occasion, call, handle);
}

unsigned visible_count(void)
{
    return session.visible_count;
}

const struct device *visible_gpu(unsigned index)
{
    return index < session.visible_count ? session.visible[index] : NULL;
}

bool visible_index(const struct device *gpu, unsigned *index)
{
    for (unsigned i = 0; i < session.visible_count; i++) {
        if (session.visible[i] == gpu) {
            *index = i;
            return true;
        }
    }
    return false;
}
