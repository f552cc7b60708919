/*
 * The entry points that begin and end a session, tell versions, and find devices.
 *
 * Prototypes are declared here and in devices.c, since there is no header for others to include: the
 * callers reach these functions by name.
 */
#include <stddef.h>
#include <string.h>

#include "session.h"
#include "text.h"

EXPORT nvml_status nvmlInitWithFlags(unsigned flags);
EXPORT nvml_status nvmlInit_v2(void);
EXPORT nvml_status nvmlShutdown(void);
EXPORT const char *nvmlErrorString(nvml_status status);
EXPORT nvml_status nvmlSystemGetDriverVersion(char *version, unsigned size);
EXPORT nvml_status nvmlSystemGetNVMLVersion(char *version, unsigned size);
EXPORT nvml_status nvmlSystemGetCudaDriverVersion(int *version);
EXPORT nvml_status nvmlSystemGetCudaDriverVersion_v2(int *version);
EXPORT nvml_status nvmlDeviceGetCount_v2(unsigned *count);
EXPORT nvml_status nvmlDeviceGetHandleByIndex_v2(unsigned index, const struct device **handle);
EXPORT nvml_status nvmlDeviceGetHandleByUUID(const char *uuid, const struct device **handle);
EXPORT nvml_status nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, const struct device **handle);

nvml_status nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    return session_begin(CALL_nvmlInitWithFlags);
}

nvml_status nvmlInit_v2(void)
{
    return session_begin(CALL_nvmlInit_v2);
}

nvml_status nvmlShutdown(void)
{
    return session_end();
}

const char *nvmlErrorString(nvml_status status)
{
    switch (status) {
#define AS_CASE(name, number, words) \
    case name: \
        return words;
        NVML_RETURNS(AS_CASE)
#undef AS_CASE
    default:
        return "unknown return code";
    }
}

nvml_status nvmlSystemGetDriverVersion(char *version, unsigned size)
{
    nvml_status status = enter(CALL_nvmlSystemGetDriverVersion);

    return status != NVML_SUCCESS ? status : put_text(version, size, session_scenario()->driver_version);
}

nvml_status nvmlSystemGetNVMLVersion(char *version, unsigned size)
{
    nvml_status status = enter(CALL_nvmlSystemGetNVMLVersion);

    return status != NVML_SUCCESS ? status : put_text(version, size, session_scenario()->nvml_version);
}

static nvml_status cuda_version(enum call call, int *version)
{
    nvml_status status = enter(call);

    if (status == NVML_SUCCESS)
        *version = (int)session_scenario()->cuda_version;
    return status;
}

nvml_status nvmlSystemGetCudaDriverVersion(int *version)
{
    return cuda_version(CALL_nvmlSystemGetCudaDriverVersion, version);
}

nvml_status nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    return cuda_version(CALL_nvmlSystemGetCudaDriverVersion_v2, version);
}

nvml_status nvmlDeviceGetCount_v2(unsigned *count)
{
    nvml_status status = enter(CALL_nvmlDeviceGetCount_v2);

    if (status == NVML_SUCCESS)
        *count = visible_count();
    return status;
}

/* Hands out what a lookup found, or the error for having found nothing. */
static nvml_status give(enum call call, const struct device *found, nvml_status missing,
                        const struct device **handle)
{
    nvml_status status = enter_device(call, found);

    if (status != NVML_SUCCESS)
        return status;
    if (found == NULL)
        return missing;
    if (found->not_permitted || (found->parent != NULL && found->parent->not_permitted))
        return NVML_ERROR_NO_PERMISSION;
    *handle = found;
    return NVML_SUCCESS;
}

nvml_status nvmlDeviceGetHandleByIndex_v2(unsigned index, const struct device **handle)
{
    return give(CALL_nvmlDeviceGetHandleByIndex_v2, visible_gpu(index), NVML_ERROR_INVALID_ARGUMENT, handle);
}

static bool is_visible(const struct device *device)
{
    unsigned index;

    return visible_index(device->parent != NULL ? device->parent : device, &index);
}

nvml_status nvmlDeviceGetHandleByUUID(const char *uuid, const struct device **handle)
{
    const struct scenario *scenario = session_scenario();
    const struct device *found = NULL;

    for (size_t i = 0; scenario != NULL && found == NULL && i < scenario->device_count; i++)
        if (strcmp(scenario->devices[i]->uuid, uuid) == 0 && is_visible(scenario->devices[i]))
            found = scenario->devices[i];
    return give(CALL_nvmlDeviceGetHandleByUUID, found, NVML_ERROR_NOT_FOUND, handle);
}

nvml_status nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, const struct device **handle)
{
    const struct device *found = NULL;
    struct pci_address wanted;

    if (!parse_pci_address(bus_id, &wanted))
        return give(CALL_nvmlDeviceGetHandleByPciBusId_v2, NULL, NVML_ERROR_INVALID_ARGUMENT, handle);
    for (unsigned i = 0; found == NULL && i < visible_count(); i++) {
        const struct pci_address *pci = &visible_gpu(i)->pci;

        /* NVML's addresses carry no function: a GPU is the whole device. */
        if (pci->domain == wanted.domain && pci->bus == wanted.bus && pci->device == wanted.device)
            found = visible_gpu(i);
    }
    return give(CALL_nvmlDeviceGetHandleByPciBusId_v2, found, NVML_ERROR_NOT_FOUND, handle);
}
