/*
 * Small helpers for text, memory and errors.
 */
#define _POSIX_C_SOURCE 200809L
#include "text.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void die(const char *format, ...)
{
    va_list arguments;

    fputs("nvml stand-in: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    abort();
}

void *grow(void *array, size_t count, size_t element_size)
{
    void *grown = realloc(array, (count + 1) * element_size);

    if (grown == NULL)
        die("out of memory");
    memset((char *)grown + count * element_size, 0, element_size);
    return grown;
}

char *copy_text(const char *text)
{
    char *copy = strdup(text);

    if (copy == NULL)
        die("out of memory");
    return copy;
}

char *trim(char *text)
{
    size_t length;

    while (isspace((unsigned char)*text))
        text++;
    length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        text[--length] = '\0';
    return text;
}

size_t split(char *text, char **words, size_t limit)
{
    size_t count = 0;
    char *rest = NULL;

    for (char *word = strtok_r(text, " \t", &rest); word != NULL; word = strtok_r(NULL, " \t", &rest)) {
        if (count == limit)
            return limit + 1;
        words[count++] = word;
    }
    return count;
}

bool parse_number(const char *text, uint64_t limit, uint64_t *number)
{
    char *end = NULL;

    if (!isdigit((unsigned char)*text))
        return false;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0' && *number <= limit;
}

static bool parse_hex(const char **text, size_t least, size_t most, char stop, unsigned *number)
{
    size_t digits = 0;
    unsigned value = 0;

    for (; isxdigit((unsigned char)**text) && digits < most; digits++, (*text)++) {
        char digit = (char)tolower((unsigned char)**text);

        value = value * 16 + (unsigned)(isdigit((unsigned char)digit) ? digit - '0' : digit - 'a' + 10);
    }
    if (digits < least || **text != stop)
        return false;
    if (stop != '\0')
        (*text)++;
    *number = value;
    return true;
}

bool parse_pci_address(const char *text, struct pci_address *address)
{
    const char *device;

    if (!parse_hex(&text, 4, 8, ':', &address->domain) || !parse_hex(&text, 2, 2, ':', &address->bus))
        return false;
    device = text;
    address->function = 0;
    if (parse_hex(&text, 2, 2, '\0', &address->device))
        return address->device < 32;
    text = device;
    return parse_hex(&text, 2, 2, '.', &address->device) && parse_hex(&text, 1, 1, '\0', &address->function)
        && address->device < 32 && address->function < 8;
}

nvml_status put_text(char *buffer, unsigned size, const char *text)
{
    size_t length = strlen(text);

    if (buffer == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (length >= size)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(buffer, text, length + 1);
    return NVML_SUCCESS;
}
