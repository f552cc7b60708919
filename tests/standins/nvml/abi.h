/*
 * The part of NVML's binary interface that the stand-in speaks.
 *
 * Numbers and struct layouts follow what pynvml (nvidia-ml-py 13) declares, since pynvml is the only
 * caller; each size is checked where it is declared.
 */
#ifndef STANDIN_NVML_ABI_H
#define STANDIN_NVML_ABI_H

#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

typedef int nvml_status;

/* RETURN(name, number, words) for every return code of NVML 13. */
#define NVML_RETURNS(RETURN) \
    RETURN(NVML_SUCCESS, 0, "success") \
    RETURN(NVML_ERROR_UNINITIALIZED, 1, "not initialised") \
    RETURN(NVML_ERROR_INVALID_ARGUMENT, 2, "invalid argument") \
    RETURN(NVML_ERROR_NOT_SUPPORTED, 3, "not supported") \
    RETURN(NVML_ERROR_NO_PERMISSION, 4, "insufficient permissions") \
    RETURN(NVML_ERROR_ALREADY_INITIALIZED, 5, "already initialised") \
    RETURN(NVML_ERROR_NOT_FOUND, 6, "not found") \
    RETURN(NVML_ERROR_INSUFFICIENT_SIZE, 7, "insufficient size") \
    RETURN(NVML_ERROR_INSUFFICIENT_POWER, 8, "insufficient external power") \
    RETURN(NVML_ERROR_DRIVER_NOT_LOADED, 9, "driver not loaded") \
    RETURN(NVML_ERROR_TIMEOUT, 10, "timeout") \
    RETURN(NVML_ERROR_IRQ_ISSUE, 11, "interrupt request issue") \
    RETURN(NVML_ERROR_LIBRARY_NOT_FOUND, 12, "library not found") \
    RETURN(NVML_ERROR_FUNCTION_NOT_FOUND, 13, "function not found") \
    RETURN(NVML_ERROR_CORRUPTED_INFOROM, 14, "corrupted infoROM") \
    RETURN(NVML_ERROR_GPU_IS_LOST, 15, "GPU is lost") \
    RETURN(NVML_ERROR_RESET_REQUIRED, 16, "GPU needs a reset") \
    RETURN(NVML_ERROR_OPERATING_SYSTEM, 17, "blocked by the operating system") \
    RETURN(NVML_ERROR_LIB_RM_VERSION_MISMATCH, 18, "driver/library version mismatch") \
    RETURN(NVML_ERROR_IN_USE, 19, "in use by another client") \
    RETURN(NVML_ERROR_MEMORY, 20, "insufficient memory") \
    RETURN(NVML_ERROR_NO_DATA, 21, "no data") \
    RETURN(NVML_ERROR_VGPU_ECC_NOT_SUPPORTED, 22, "vGPU with ECC not supported") \
    RETURN(NVML_ERROR_INSUFFICIENT_RESOURCES, 23, "insufficient resources") \
    RETURN(NVML_ERROR_FREQ_NOT_SUPPORTED, 24, "frequency not supported") \
    RETURN(NVML_ERROR_ARGUMENT_VERSION_MISMATCH, 25, "argument version mismatch") \
    RETURN(NVML_ERROR_DEPRECATED, 26, "deprecated") \
    RETURN(NVML_ERROR_NOT_READY, 27, "not ready") \
    RETURN(NVML_ERROR_GPU_NOT_FOUND, 28, "GPU not found") \
    RETURN(NVML_ERROR_INVALID_STATE, 29, "invalid state") \
    RETURN(NVML_ERROR_RESET_TYPE_NOT_SUPPORTED, 30, "reset type not supported") \
    RETURN(NVML_ERROR_UNKNOWN, 999, "unknown error")

enum {
#define AS_ENUM(name, number, words) name = number,
    NVML_RETURNS(AS_ENUM)
#undef AS_ENUM
};

enum { NVML_DISABLED = 0, NVML_ENABLED = 1 };
enum { NVML_COUNTER_TYPES = 2, NVML_ERROR_TYPES = 2, NVML_MEMORY_LOCATIONS = 8 };
enum { NVML_TEMPERATURE_GPU = 0 };

/* What NVML writes where a number is not available. */
#define NVML_NO_U32 UINT32_MAX
#define NVML_NO_U64 UINT64_MAX

struct nvml_pci_info {
    char bus_id_legacy[16];
    unsigned domain;
    unsigned bus;
    unsigned device;
    unsigned pci_device_id;
    unsigned pci_subsystem_id;
    char bus_id[32];
};
_Static_assert(sizeof(struct nvml_pci_info) == 68, "nvmlPciInfo_t");

struct nvml_memory {
    uint64_t total;
    uint64_t free;
    uint64_t used;
};
_Static_assert(sizeof(struct nvml_memory) == 24, "nvmlMemory_t");

struct nvml_memory_v2 {
    unsigned version;
    uint64_t total;
    uint64_t reserved;
    uint64_t free;
    uint64_t used;
};
_Static_assert(sizeof(struct nvml_memory_v2) == 40, "nvmlMemory_v2_t");
/* NVML's struct versions: the version number in the top byte, the size below. */
#define NVML_MEMORY_V2 (sizeof(struct nvml_memory_v2) | 2U << 24)

struct nvml_process {
    unsigned pid;
    uint64_t used_memory;
    unsigned gpu_instance;
    unsigned compute_instance;
};
_Static_assert(sizeof(struct nvml_process) == 24, "nvmlProcessInfo_v2_t and _v3_t");

struct nvml_utilization {
    unsigned gpu;
    unsigned memory;
};
_Static_assert(sizeof(struct nvml_utilization) == 8, "nvmlUtilization_t");

#endif
