/*
 * The entry points that say which device a handle is: names, numbers, addresses, MIG instances.
 */
#include <stdio.h>

#include "session.h"
#include "text.h"

EXPORT nvml_status nvmlDeviceGetUUID(const struct device *handle, char *uuid, unsigned size);
EXPORT nvml_status nvmlDeviceGetName(const struct device *handle, char *name, unsigned size);
EXPORT nvml_status nvmlDeviceGetIndex(const struct device *handle, unsigned *index);
EXPORT nvml_status nvmlDeviceGetMinorNumber(const struct device *handle, unsigned *minor);
EXPORT nvml_status nvmlDeviceGetPciInfo_v3(const struct device *handle, struct nvml_pci_info *pci);
EXPORT nvml_status nvmlDeviceGetMigMode(const struct device *handle, unsigned *current, unsigned *pending);
EXPORT nvml_status nvmlDeviceGetMaxMigDeviceCount(const struct device *handle, unsigned *count);
EXPORT nvml_status nvmlDeviceGetMigDeviceHandleByIndex(const struct device *handle, unsigned slot,
                                                       const struct device **instance);
EXPORT nvml_status nvmlDeviceIsMigDeviceHandle(const struct device *handle, unsigned *is_instance);
EXPORT nvml_status nvmlDeviceGetDeviceHandleFromMigDeviceHandle(const struct device *handle,
                                                                const struct device **gpu);
EXPORT nvml_status nvmlDeviceGetGpuInstanceId(const struct device *handle, unsigned *id);
EXPORT nvml_status nvmlDeviceGetComputeInstanceId(const struct device *handle, unsigned *id);

enum { PCI_DEVICE_ID = 0x20B010DE, PCI_SUBSYSTEM_ID = 0x134F10DE };

/* Callers must ask the GPU for what a MIG instance does not have. */
static nvml_status enter_gpu(enum call call, const struct device *handle)
{
    nvml_status status = enter_handle(call, handle);

    if (status == NVML_SUCCESS && handle->parent != NULL)
        return NVML_ERROR_NOT_SUPPORTED;
    return status;
}

static nvml_status enter_instance(enum call call, const struct device *handle)
{
    nvml_status status = enter_handle(call, handle);

    if (status == NVML_SUCCESS && handle->parent == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    return status;
}

nvml_status nvmlDeviceGetUUID(const struct device *handle, char *uuid, unsigned size)
{
    nvml_status status = enter_handle(CALL_nvmlDeviceGetUUID, handle);

    return status != NVML_SUCCESS ? status : put_text(uuid, size, handle->uuid);
}

nvml_status nvmlDeviceGetName(const struct device *handle, char *name, unsigned size)
{
    nvml_status status = enter_handle(CALL_nvmlDeviceGetName, handle);

    return status != NVML_SUCCESS ? status : put_text(name, size, handle->name);
}

nvml_status nvmlDeviceGetIndex(const struct device *handle, unsigned *index)
{
    nvml_status status = enter_handle(CALL_nvmlDeviceGetIndex, handle);

    if (status != NVML_SUCCESS)
        return status;
    if (handle->parent != NULL) {
        *index = handle->position;
        return NVML_SUCCESS;
    }
    return visible_index(handle, index) ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

nvml_status nvmlDeviceGetMinorNumber(const struct device *handle, unsigned *minor)
{
    nvml_status status = enter_gpu(CALL_nvmlDeviceGetMinorNumber, handle);

    if (status != NVML_SUCCESS)
        return status;
    if (!handle->minor.supported)
        return NVML_ERROR_NOT_SUPPORTED;
    *minor = handle->minor.value;
    return NVML_SUCCESS;
}

nvml_status nvmlDeviceGetPciInfo_v3(const struct device *handle, struct nvml_pci_info *pci)
{
    nvml_status status = enter_gpu(CALL_nvmlDeviceGetPciInfo_v3, handle);
    const struct pci_address *address = &handle->pci;

    if (status != NVML_SUCCESS)
        return status;
    *pci = (struct nvml_pci_info){
        .domain = address->domain,
        .bus = address->bus,
        .device = address->device,
        .pci_device_id = PCI_DEVICE_ID,
        .pci_subsystem_id = PCI_SUBSYSTEM_ID,
    };
    /* The older text has room for four digits of domain, the newer one for eight. */
    snprintf(pci->bus_id_legacy, sizeof pci->bus_id_legacy, "%04X:%02X:%02X.%X", address->domain & 0xFFFFU,
             address->bus & 0xFFU, address->device & 0x1FU, address->function & 0x7U);
    snprintf(pci->bus_id, sizeof pci->bus_id, "%08X:%02X:%02X.%X", address->domain, address->bus,
             address->device, address->function);
    return NVML_SUCCESS;
}

nvml_status nvmlDeviceGetMigMode(const struct device *handle, unsigned *current, unsigned *pending)
{
    nvml_status status = enter_gpu(CALL_nvmlDeviceGetMigMode, handle);

    if (status != NVML_SUCCESS)
        return status;
    if (!handle->mig_current.supported)
        return NVML_ERROR_NOT_SUPPORTED;
    *current = handle->mig_current.value;
    *pending = handle->mig_pending;
    return NVML_SUCCESS;
}

nvml_status nvmlDeviceGetMaxMigDeviceCount(const struct device *handle, unsigned *count)
{
    nvml_status status = enter_gpu(CALL_nvmlDeviceGetMaxMigDeviceCount, handle);

    if (status == NVML_SUCCESS)
        *count = handle->mig_slots;
    return status;
}

static const struct device *instance_in_slot(const struct device *gpu, unsigned slot)
{
    const struct scenario *scenario = session_scenario();

    for (size_t i = 0; i < scenario->device_count; i++)
        if (scenario->devices[i]->parent == gpu && scenario->devices[i]->position == slot)
            return scenario->devices[i];
    return NULL;
}

nvml_status nvmlDeviceGetMigDeviceHandleByIndex(const struct device *handle, unsigned slot,
                                                const struct device **instance)
{
    nvml_status status = enter_gpu(CALL_nvmlDeviceGetMigDeviceHandleByIndex, handle);
    const struct device *found;

    if (status != NVML_SUCCESS)
        return status;
    if (slot >= handle->mig_slots)
        return NVML_ERROR_INVALID_ARGUMENT;
    found = handle->mig_current.value == NVML_ENABLED ? instance_in_slot(handle, slot) : NULL;
    if (found == NULL)
        return NVML_ERROR_NOT_FOUND;
    if (found->not_permitted)
        return NVML_ERROR_NO_PERMISSION;
    *instance = found;
    return NVML_SUCCESS;
}

nvml_status nvmlDeviceIsMigDeviceHandle(const struct device *handle, unsigned *is_instance)
{
    nvml_status status = enter_handle(CALL_nvmlDeviceIsMigDeviceHandle, handle);

    if (status == NVML_SUCCESS)
        *is_instance = handle->parent != NULL;
    return status;
}

nvml_status nvmlDeviceGetDeviceHandleFromMigDeviceHandle(const struct device *handle,
                                                         const struct device **gpu)
{
    nvml_status status = enter_instance(CALL_nvmlDeviceGetDeviceHandleFromMigDeviceHandle, handle);

    if (status == NVML_SUCCESS)
        *gpu = handle->parent;
    return status;
}

nvml_status nvmlDeviceGetGpuInstanceId(const struct device *handle, unsigned *id)
{
    nvml_status status = enter_instance(CALL_nvmlDeviceGetGpuInstanceId, handle);

    if (status == NVML_SUCCESS)
        *id = handle->gpu_instance;
    return status;
}

nvml_status nvmlDeviceGetComputeInstanceId(const struct device *handle, unsigned *id)
{
    nvml_status status = enter_instance(CALL_nvmlDeviceGetComputeInstanceId, handle);

    if (status == NVML_SUCCESS)
        *id = handle->compute_instance;
    return status;
}
