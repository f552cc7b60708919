/*
 * Every function that the library exports, by name.
 *
 * The scenario parser checks call names against this list, and build.py reads it to know what can be
 * left out. SYSTEM calls concern no single GPU, DEVICE calls do, so only those can be aimed at one.
 */
#ifndef STANDIN_NVML_ENTRY_POINTS_H
#define STANDIN_NVML_ENTRY_POINTS_H

#define NVML_CALLS(SYSTEM, DEVICE) \
    SYSTEM(nvmlInit_v2) \
    SYSTEM(nvmlInitWithFlags) \
    SYSTEM(nvmlShutdown) \
    SYSTEM(nvmlErrorString) \
    SYSTEM(nvmlSystemGetDriverVersion) \
    SYSTEM(nvmlSystemGetNVMLVersion) \
    SYSTEM(nvmlSystemGetCudaDriverVersion) \
    SYSTEM(nvmlSystemGetCudaDriverVersion_v2) \
    SYSTEM(nvmlDeviceGetCount_v2) \
    DEVICE(nvmlDeviceGetHandleByIndex_v2) \
    DEVICE(nvmlDeviceGetHandleByUUID) \
    DEVICE(nvmlDeviceGetHandleByPciBusId_v2) \
    DEVICE(nvmlDeviceGetUUID) \
    DEVICE(nvmlDeviceGetName) \
    DEVICE(nvmlDeviceGetIndex) \
    DEVICE(nvmlDeviceGetMinorNumber) \
    DEVICE(nvmlDeviceGetPciInfo_v3) \
    DEVICE(nvmlDeviceGetMigMode) \
    DEVICE(nvmlDeviceGetMaxMigDeviceCount) \
    DEVICE(nvmlDeviceGetMigDeviceHandleByIndex) \
    DEVICE(nvmlDeviceIsMigDeviceHandle) \
    DEVICE(nvmlDeviceGetDeviceHandleFromMigDeviceHandle) \
    DEVICE(nvmlDeviceGetGpuInstanceId) \
    DEVICE(nvmlDeviceGetComputeInstanceId) \
    DEVICE(nvmlDeviceGetPersistenceMode) \
    DEVICE(nvmlDeviceGetMemoryInfo) \
    DEVICE(nvmlDeviceGetMemoryInfo_v2) \
    DEVICE(nvmlDeviceGetEccMode) \
    DEVICE(nvmlDeviceGetTotalEccErrors) \
    DEVICE(nvmlDeviceGetMemoryErrorCounter) \
    DEVICE(nvmlDeviceGetRemappedRows) \
    DEVICE(nvmlDeviceGetRetiredPagesPendingStatus) \
    DEVICE(nvmlDeviceGetComputeRunningProcesses_v2) \
    DEVICE(nvmlDeviceGetComputeRunningProcesses_v3) \
    DEVICE(nvmlDeviceGetGraphicsRunningProcesses_v2) \
    DEVICE(nvmlDeviceGetGraphicsRunningProcesses_v3) \
    DEVICE(nvmlDeviceGetTemperature) \
    DEVICE(nvmlDeviceGetUtilizationRates) \
    DEVICE(nvmlDeviceGetPowerUsage)

enum call {
#define AS_ENUM(name) CALL_##name,
    NVML_CALLS(AS_ENUM, AS_ENUM)
#undef AS_ENUM
    CALL_COUNT,
    CALL_ANY = CALL_COUNT
};

#endif
