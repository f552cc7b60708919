/*
 * Small helpers for text, memory and errors.
 */
#ifndef STANDIN_NVML_TEXT_H
#define STANDIN_NVML_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"
#include "scenario.h"

/* One line on standard error, then abort(3): a mistake in a test must not look like a driver's answer. */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Like realloc(3) by one element more than count; ends the process when memory runs out. */
void *grow(void *array, size_t count, size_t element_size);
char *copy_text(const char *text);

/* Cuts white space off both ends, in place. */
char *trim(char *text);
/* Splits at white space in place; returns how many words there are, at most limit. */
size_t split(char *text, char **words, size_t limit);

/* The whole text must be a decimal number up to the limit. */
bool parse_number(const char *text, uint64_t limit, uint64_t *number);
/* DOMAIN:BUS:DEVICE[.FUNCTION] in hexadecimal, 4 or 8 digits of domain, as NVML and sysfs write it. */
bool parse_pci_address(const char *text, struct pci_address *address);

/* Copies with the closing NUL, or NVML_ERROR_INSUFFICIENT_SIZE. */
nvml_status put_text(char *buffer, unsigned size, const char *text);

#endif
