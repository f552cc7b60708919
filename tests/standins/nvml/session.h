/*
 * What holds between nvmlInit and nvmlShutdown: the scenario, the visible GPUs, and the faults due.
 */
#ifndef STANDIN_NVML_SESSION_H
#define STANDIN_NVML_SESSION_H

#include "scenario.h"

/* Counts one initialisation; the first one reads the scenario. */
nvml_status session_begin(enum call call);
nvml_status session_end(void);

/* The scenario while the library is initialised, else NULL. */
const struct scenario *session_scenario(void);

/* Every call starts with one of these: what they return, if not NVML_SUCCESS, is the call's answer. A
 * fault may also sleep, hang or crash here. device may be NULL where the call found none. */
nvml_status enter(enum call call);
nvml_status enter_device(enum call call, const struct device *device);
/* The same for a call that is given a handle: it is checked before it is used. */
nvml_status enter_handle(enum call call, const struct device *handle);

unsigned visible_count(void);
/* NULL beyond the end. */
const struct device *visible_gpu(unsigned index);
/* A GPU's present index; false when it is not visible. */
bool visible_index(const struct device *gpu, unsigned *index);

#endif
