/*
 * The entry points that read a device's state: memory, health, processes, sensors.
 */
#include <stddef.h>

#include "session.h"
#include "text.h"

EXPORT nvml_status nvmlDeviceGetPersistenceMode(const struct device *handle, unsigned *mode);
EXPORT nvml_status nvmlDeviceGetMemoryInfo(const struct device *handle, struct nvml_memory *memory);
EXPORT nvml_status nvmlDeviceGetMemoryInfo_v2(const struct device *handle, struct nvml_memory_v2 *memory);
EXPORT nvml_status nvmlDeviceGetEccMode(const struct device *handle, unsigned *current, unsigned *pending);
EXPORT nvml_status nvmlDeviceGetTotalEccErrors(const struct device *handle, unsigned kind, unsigned lifetime,
                                               uint64_t *count);
EXPORT nvml_status nvmlDeviceGetMemoryErrorCounter(const struct device *handle, unsigned kind,
                                                   unsigned lifetime, unsigned place, uint64_t *count);
EXPORT nvml_status nvmlDeviceGetRemappedRows(const struct device *handle, unsigned *corrected,
                                             unsigned *uncorrected, unsigned *pending, unsigned *failed);
EXPORT nvml_status nvmlDeviceGetRetiredPagesPendingStatus(const struct device *handle, unsigned *pending);
EXPORT nvml_status nvmlDeviceGetComputeRunningProcesses_v2(const struct device *handle, unsigned *count,
                                                           struct nvml_process *processes);
EXPORT nvml_status nvmlDeviceGetComputeRunningProcesses_v3(const struct device *handle, unsigned *count,
                                                           struct nvml_process *processes);
EXPORT nvml_status nvmlDeviceGetGraphicsRunningProcesses_v2(const struct device *handle, unsigned *count,
                                                            struct nvml_process *processes);
EXPORT nvml_status nvmlDeviceGetGraphicsRunningProcesses_v3(const struct device *handle, unsigned *count,
                                                            struct nvml_process *processes);
EXPORT nvml_status nvmlDeviceGetTemperature(const struct device *handle, unsigned sensor, unsigned *celsius);
EXPORT nvml_status nvmlDeviceGetUtilizationRates(const struct device *handle,
                                                 struct nvml_utilization *utilization);
EXPORT nvml_status nvmlDeviceGetPowerUsage(const struct device *handle, unsigned *milliwatts);

/* For what a GPU has and a MIG instance lacks. */
static nvml_status enter_reading(enum call call, const struct device *handle)
{
    nvml_status status = enter_handle(call, handle);

    if (status == NVML_SUCCESS && handle->parent != NULL)
        return NVML_ERROR_NOT_SUPPORTED;
    return status;
}

static nvml_status put_reading(nvml_status status, const struct reading *reading, unsigned *value)
{
    if (status != NVML_SUCCESS)
        return status;
    if (!reading->supported)
        return NVML_ERROR_NOT_SUPPORTED;
    *value = reading->value;
    return NVML_SUCCESS;
}

nvml_status nvmlDeviceGetPersistenceMode(const struct device *handle, unsigned *mode)
{
    nvml_status status = enter_reading(CALL_nvmlDeviceGetPersistenceMode, handle);

    if (status == NVML_SUCCESS)
        *mode = handle->persistence ? NVML_ENABLED : NVML_DISABLED;
    return status;
}

nvml_status nvmlDeviceGetMemoryInfo(const struct device *handle, struct nvml_memory *memory)
{
    nvml_status status = enter_handle(CALL_nvmlDeviceGetMemoryInfo, handle);

    if (status != NVML_SUCCESS)
        return status;
    *memory = (struct nvml_memory){
        .total = handle->memory_total,
        .free = handle->memory_total - handle->memory_used,
        .used = handle->memory_used,
    };
    return NVML_SUCCESS;
}

nvml_status nvmlDeviceGetMemoryInfo_v2(const struct device *handle, struct nvml_memory_v2 *memory)
{
    nvml_status status = enter_handle(CALL_nvmlDeviceGetMemoryInfo_v2, handle);

    if (status != NVML_SUCCESS)
        return status;
    if (memory->version != NVML_MEMORY_V2)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    memory->total = handle->memory_total;
    memory->reserved = 0;
    memory->free = handle->memory_total - handle->memory_used;
    memory->used = handle->memory_used;
    return NVML_SUCCESS;
}

static nvml_status enter_ecc(enum call call, const struct device *handle)
{
    nvml_status status = enter_reading(call, handle);

    if (status == NVML_SUCCESS && !handle->ecc.supported)
        return NVML_ERROR_NOT_SUPPORTED;
    return status;
}

nvml_status nvmlDeviceGetEccMode(const struct device *handle, unsigned *current, unsigned *pending)
{
    nvml_status status = enter_ecc(CALL_nvmlDeviceGetEccMode, handle);

    if (status == NVML_SUCCESS)
        *current = *pending = NVML_ENABLED;
    return status;
}

nvml_status nvmlDeviceGetTotalEccErrors(const struct device *handle, unsigned kind, unsigned lifetime,
                                        uint64_t *count)
{
    nvml_status status = enter_ecc(CALL_nvmlDeviceGetTotalEccErrors, handle);

    if (status != NVML_SUCCESS)
        return status;
    if (kind >= NVML_ERROR_TYPES || lifetime >= NVML_COUNTER_TYPES)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = handle->ecc.unplaced[lifetime][kind];
    for (unsigned place = 0; place < NVML_MEMORY_LOCATIONS; place++)
        *count += handle->ecc.counts[lifetime][kind][place];
    return NVML_SUCCESS;
}

nvml_status nvmlDeviceGetMemoryErrorCounter(const struct device *handle, unsigned kind, unsigned lifetime,
                                            unsigned place, uint64_t *count)
{
    nvml_status status = enter_ecc(CALL_nvmlDeviceGetMemoryErrorCounter, handle);

    if (status != NVML_SUCCESS)
        return status;
    if (kind >= NVML_ERROR_TYPES || lifetime >= NVML_COUNTER_TYPES || place >= NVML_MEMORY_LOCATIONS)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = handle->ecc.counts[lifetime][kind][place];
    return NVML_SUCCESS;
}

nvml_status nvmlDeviceGetRemappedRows(const struct device *handle, unsigned *corrected, unsigned *uncorrected,
                                      unsigned *pending, unsigned *failed)
{
    nvml_status status = enter_reading(CALL_nvmlDeviceGetRemappedRows, handle);

    if (status != NVML_SUCCESS)
        return status;
    if (!handle->remapped_rows.supported)
        return NVML_ERROR_NOT_SUPPORTED;
    *corrected = handle->remapped_rows.corrected;
    *uncorrected = handle->remapped_rows.uncorrected;
    *pending = handle->remapped_rows.pending;
    *failed = handle->remapped_rows.failed;
    return NVML_SUCCESS;
}

nvml_status nvmlDeviceGetRetiredPagesPendingStatus(const struct device *handle, unsigned *pending)
{
    nvml_status status = enter_reading(CALL_nvmlDeviceGetRetiredPagesPendingStatus, handle);

    return put_reading(status, &handle->retired_pages_pending, pending);
}

/* Adds the device's processes of the kind; counts all, and writes those that fit. */
static unsigned add_processes(const struct device *device, bool graphics, unsigned count,
                              struct nvml_process *processes, unsigned room)
{
    for (size_t i = 0; i < device->process_count; i++) {
        if (device->processes[i].graphics != graphics)
            continue;
        if (count < room)
            processes[count] = (struct nvml_process){
                .pid = device->processes[i].pid,
                .used_memory = device->processes[i].bytes,
                .gpu_instance = device->gpu_instance,
                .compute_instance = device->compute_instance,
            };
        count++;
    }
    return count;
}

static nvml_status list_processes(enum call call, const struct device *handle, bool graphics, unsigned *count,
                                  struct nvml_process *processes)
{
    nvml_status status = enter_handle(call, handle);
    const struct scenario *scenario = session_scenario();
    unsigned room, found;

    if (status != NVML_SUCCESS)
        return status;
    room = processes == NULL ? 0 : *count;
    found = add_processes(handle, graphics, 0, processes, room);
    /* A GPU in MIG mode lists the processes of its instances too. */
    for (size_t i = 0; i < scenario->device_count; i++)
        if (scenario->devices[i]->parent == handle)
            found = add_processes(scenario->devices[i], graphics, found, processes, room);
    *count = found;
    return found > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

#define LIST_PROCESSES(name, graphics) \
    nvml_status name(const struct device *handle, unsigned *count, struct nvml_process *processes) \
    { \
        return list_processes(CALL_##name, handle, graphics, count, processes); \
    }

LIST_PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2, false)
LIST_PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, false)
LIST_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2, true)
LIST_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, true)

nvml_status nvmlDeviceGetTemperature(const struct device *handle, unsigned sensor, unsigned *celsius)
{
    nvml_status status = enter_reading(CALL_nvmlDeviceGetTemperature, handle);

    if (status == NVML_SUCCESS && sensor != NVML_TEMPERATURE_GPU)
        return NVML_ERROR_INVALID_ARGUMENT;
    return put_reading(status, &handle->temperature, celsius);
}

nvml_status nvmlDeviceGetUtilizationRates(const struct device *handle, struct nvml_utilization *utilization)
{
    nvml_status status = enter_reading(CALL_nvmlDeviceGetUtilizationRates, handle);

    status = put_reading(status, &handle->utilization_gpu, &utilization->gpu);
    if (status == NVML_SUCCESS)
        utilization->memory = handle->utilization_memory;
    return status;
}

nvml_status nvmlDeviceGetPowerUsage(const struct device *handle, unsigned *milliwatts)
{
    return put_reading(enter_reading(CALL_nvmlDeviceGetPowerUsage, handle), &handle->power_milliwatts, milliwatts);
}
