/*
 * What goes wrong, and when.
 */
#ifndef STANDIN_NVML_FAULTS_H
#define STANDIN_NVML_FAULTS_H

#include "scenario.h"

/* Which initialisation this is, counted over all processes that use the scenario. */
struct occasion {
    uint64_t init_number;   /* from 1 */
    uint64_t first_init_ms; /* when the first one was, on the clock that all processes share */
};

/* Counts this initialisation in the state file; touches no file when no fault has a window. */
struct occasion occasion_of_init(const struct scenario *scenario);

/* Does what the faults for the call say; returns the error that one asks for, or NVML_SUCCESS. */
nvml_status apply_faults(const struct scenario *scenario, const struct occasion *occasion, enum call call,
                         const struct device *device);

/* Whether the driver shows no GPU at all on this occasion. */
bool no_gpus(const struct scenario *scenario, const struct occasion *occasion);

#endif
