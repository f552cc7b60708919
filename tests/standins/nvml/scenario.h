/*
 * What a scenario file says, as values: the GPUs, their MIG instances, and what goes wrong when.
 */
#ifndef STANDIN_NVML_SCENARIO_H
#define STANDIN_NVML_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"
#include "entry_points.h"

/* A number that the driver may answer with "not supported". */
struct reading {
    bool supported;
    unsigned value;
};

struct pci_address {
    unsigned domain;
    unsigned bus;
    unsigned device;
    unsigned function;
};

struct process {
    unsigned pid;
    uint64_t bytes; /* NVML_NO_U64: the driver does not know */
    bool graphics;
};

struct ecc {
    bool supported;
    /* By lifetime (volatile, aggregate), kind (corrected, uncorrected) and place. */
    uint64_t counts[NVML_COUNTER_TYPES][NVML_ERROR_TYPES][NVML_MEMORY_LOCATIONS];
    uint64_t unplaced[NVML_COUNTER_TYPES][NVML_ERROR_TYPES];
};

struct remapped_rows {
    bool supported;
    unsigned corrected;
    unsigned uncorrected;
    bool pending;
    bool failed;
};

/* A GPU, or a MIG instance of one: NVML uses one kind of handle for both. */
struct device {
    struct device *parent; /* NULL: this is a GPU */
    unsigned position;     /* a GPU's place in the file; an instance's slot on its GPU */
    char *uuid;
    char *name;
    char **nodes;
    size_t node_count;
    struct process *processes;
    size_t process_count;
    uint64_t memory_total;
    uint64_t memory_used;
    unsigned gpu_instance;
    unsigned compute_instance;

    /* Of GPUs alone. */
    struct pci_address pci;
    struct reading minor;
    struct reading mig_current;
    unsigned mig_pending;
    unsigned mig_slots;
    struct ecc ecc;
    struct remapped_rows remapped_rows;
    struct reading retired_pages_pending;
    bool persistence;
    struct reading temperature;
    struct reading utilization_gpu;
    unsigned utilization_memory;
    struct reading power_milliwatts;
    bool not_permitted; /* found at initialisation, with "open-nodes" */
};

enum fault_kind { FAULT_FAIL, FAULT_HANG, FAULT_HANG_HARD, FAULT_SLEEP, FAULT_CRASH, FAULT_NO_GPUS };
enum window_kind { WINDOW_ALWAYS, WINDOW_FIRST_INITS, WINDOW_FIRST_MS };

struct fault {
    enum fault_kind kind;
    enum call call;
    const char *target; /* as written: a GPU's place in the file, or a UUID; NULL: every GPU */
    const struct device *device;
    nvml_status status;
    unsigned milliseconds;
    enum window_kind window;
    uint64_t window_size;
    unsigned line;
};

enum open_nodes { OPEN_NODES_NO, OPEN_NODES_HIDE, OPEN_NODES_NO_PERMISSION };

struct scenario {
    const char *path;
    char *driver_version;
    char *nvml_version;
    unsigned cuda_version;
    char *state_path;
    enum open_nodes open_nodes;
    struct device **devices;
    size_t device_count;
    struct fault *faults;
    size_t fault_count;
};

/* Reads the file; a mistake in it ends the process with one line on standard error. Never freed: a
 * thread that is held up in a call may still look at it. */
const struct scenario *scenario_read(const char *path);

/* Adds a device with defaults; parent is NULL for a GPU. */
struct device *scenario_add_device(struct scenario *scenario, struct device *parent, const char *uuid);

#endif
