/*
 * Builds the scenario's values: defaults for what the file leaves out, and checks across lines.
 */
#include "scenario.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parse.h"
#include "text.h"

enum { DEFAULT_MEMORY_MIB = 40960, DEFAULT_MIG_SLOTS = 7, FIRST_BUS = 0x10, BUSES = 0xE0 };

static void set_gpu_defaults(struct device *gpu)
{
    gpu->name = copy_text("Stand-in GPU");
    gpu->memory_total = (uint64_t)DEFAULT_MEMORY_MIB << 20;
    gpu->gpu_instance = NVML_NO_U32;
    gpu->compute_instance = NVML_NO_U32;
    gpu->minor = (struct reading){true, gpu->position};
    /* Distinct addresses in file order, so that file order is also PCI order. */
    gpu->pci.domain = gpu->position / BUSES;
    gpu->pci.bus = FIRST_BUS + gpu->position % BUSES;
    gpu->ecc.supported = true;
    gpu->remapped_rows.supported = true;
    gpu->retired_pages_pending = (struct reading){true, NVML_DISABLED};
    gpu->temperature = (struct reading){true, 30};
    gpu->utilization_gpu = (struct reading){true, 0};
    gpu->power_milliwatts = (struct reading){true, 50000};
}

static unsigned position_of_next(const struct scenario *scenario, const struct device *parent)
{
    unsigned siblings = 0;

    for (size_t i = 0; i < scenario->device_count; i++)
        siblings += scenario->devices[i]->parent == parent;
    return siblings;
}

struct device *scenario_add_device(struct scenario *scenario, struct device *parent, const char *uuid)
{
    struct device *device = grow(NULL, 0, sizeof *device);

    device->parent = parent;
    device->position = position_of_next(scenario, parent);
    device->uuid = copy_text(uuid);
    if (parent == NULL)
        set_gpu_defaults(device);
    scenario->devices = grow(scenario->devices, scenario->device_count, sizeof(struct device *));
    scenario->devices[scenario->device_count++] = device;
    return device;
}

static void complete_instance(struct device *instance)
{
    struct device *gpu = instance->parent;

    if (instance->name == NULL) {
        char name[96];

        snprintf(name, sizeof name, "%.64s MIG 1g", gpu->name);
        instance->name = copy_text(name);
    }
    if (instance->memory_total == 0)
        instance->memory_total = gpu->memory_total / DEFAULT_MIG_SLOTS;
    /* A GPU with instances is in MIG mode unless the file says otherwise. */
    if (!gpu->mig_current.supported) {
        gpu->mig_current = (struct reading){true, NVML_ENABLED};
        gpu->mig_pending = NVML_ENABLED;
    }
}

static bool same_address(const struct pci_address *one, const struct pci_address *other)
{
    return one->domain == other->domain && one->bus == other->bus && one->device == other->device
        && one->function == other->function;
}

static void refuse_twins(const struct scenario *scenario, const struct device *one, const struct device *other)
{
    if (strcmp(one->uuid, other->uuid) == 0)
        die("%s: two devices have the uuid %s", scenario->path, one->uuid);
    if (one->parent != other->parent)
        return;
    if (one->parent != NULL && one->position == other->position)
        die("%s: %s and %s have the same slot", scenario->path, one->uuid, other->uuid);
    if (one->parent == NULL && same_address(&one->pci, &other->pci))
        die("%s: %s and %s have the same PCI address", scenario->path, one->uuid, other->uuid);
    if (one->parent == NULL && one->minor.supported && other->minor.supported
        && one->minor.value == other->minor.value)
        die("%s: %s and %s have the same minor", scenario->path, one->uuid, other->uuid);
}

static void check_devices(const struct scenario *scenario)
{
    for (size_t i = 0; i < scenario->device_count; i++) {
        const struct device *device = scenario->devices[i];

        for (size_t j = 0; j < i; j++)
            refuse_twins(scenario, scenario->devices[j], device);
        if (device->parent != NULL && device->position >= device->parent->mig_slots)
            die("%s: slot %u of %s is beyond its GPU's %u slots", scenario->path, device->position,
                device->uuid, device->parent->mig_slots);
    }
}

static const struct device *find_target(const struct scenario *scenario, const char *target)
{
    uint64_t position;
    bool by_position = parse_number(target, UINT32_MAX, &position);

    for (size_t i = 0; i < scenario->device_count; i++) {
        const struct device *device = scenario->devices[i];

        if (by_position ? device->parent == NULL && device->position == position
                        : strcmp(device->uuid, target) == 0)
            return device;
    }
    return NULL;
}

static void aim_faults(struct scenario *scenario)
{
    for (size_t i = 0; i < scenario->fault_count; i++) {
        struct fault *fault = &scenario->faults[i];

        if (fault->target == NULL)
            continue;
        fault->device = find_target(scenario, fault->target);
        if (fault->device == NULL)
            die("%s:%u: no GPU or MIG instance \"%s\"", scenario->path, fault->line, fault->target);
    }
}

static char *default_state_path(const char *path)
{
    char *state = malloc(strlen(path) + sizeof ".state");

    if (state == NULL)
        die("out of memory");
    return strcat(strcpy(state, path), ".state");
}

const struct scenario *scenario_read(const char *path)
{
    struct scenario *scenario = grow(NULL, 0, sizeof *scenario);

    scenario->path = copy_text(path);
    scenario->driver_version = copy_text("550.54.15");
    scenario->nvml_version = copy_text("12.550.54.15");
    scenario->cuda_version = 12040;
    parse_file(scenario);
    if (scenario->state_path == NULL)
        scenario->state_path = default_state_path(path);
    for (size_t i = 0; i < scenario->device_count; i++) {
        struct device *device = scenario->devices[i];

        if (device->parent != NULL)
            complete_instance(device);
    }
    for (size_t i = 0; i < scenario->device_count; i++) {
        struct device *device = scenario->devices[i];

        if (device->parent == NULL && device->mig_slots == 0 && device->mig_current.supported)
            device->mig_slots = DEFAULT_MIG_SLOTS;
    }
    check_devices(scenario);
    aim_faults(scenario);
    return scenario;
}
