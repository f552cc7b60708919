/*
 * Reads the scenario file's lines. Internal to the parser, but for parse_file.
 */
#ifndef STANDIN_NVML_PARSE_H
#define STANDIN_NVML_PARSE_H

#include "scenario.h"

struct parser {
    struct scenario *scenario;
    unsigned line;
    struct device *gpu;      /* the GPU that the last "gpu" opened */
    struct device *instance; /* the MIG instance that the last "mig" opened on it */
};

enum place { AT_TOP = 1, IN_GPU = 2, IN_INSTANCE = 4 };

struct word {
    const char *name;
    unsigned places; /* where the word may stand */
    size_t least;    /* how many words may follow it */
    size_t most;
    bool whole; /* what follows is one text, spaces and all */
    void (*parse)(struct parser *parser, char **words, size_t count);
};

enum { MOST_WORDS = 6 };

void parse_file(struct scenario *scenario);

/* The three tables of words, each ended by a word without a name. */
extern const struct word scenario_words[];
extern const struct word device_words[];
extern const struct word fault_words[];

/* Ends the process, naming file and line. */
_Noreturn void bad_line(const struct parser *parser, const char *what, const char *value);
unsigned number_word(const struct parser *parser, const char *word);
bool yes_or_no(const struct parser *parser, const char *word);
/* Which of the NULL-ended choices the word is. */
unsigned one_of(const struct parser *parser, const char *word, const char *const *choices);
/* The device that a line inside a block describes. */
struct device *described(const struct parser *parser);

#endif
