/*
 * Reads the scenario file line by line and hands each line to its word's function.
 */
#define _POSIX_C_SOURCE 200809L
#include "parse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

void bad_line(const struct parser *parser, const char *what, const char *value)
{
    die("%s:%u: %s \"%s\"", parser->scenario->path, parser->line, what, value);
}

unsigned number_word(const struct parser *parser, const char *word)
{
    uint64_t number;

    if (!parse_number(word, UINT32_MAX - 1, &number))
        bad_line(parser, "not a number", word);
    return (unsigned)number;
}

bool yes_or_no(const struct parser *parser, const char *word)
{
    static const char *const choices[] = {"no", "yes", NULL};

    return one_of(parser, word, choices) == 1;
}

unsigned one_of(const struct parser *parser, const char *word, const char *const *choices)
{
    for (unsigned i = 0; choices[i] != NULL; i++)
        if (strcmp(word, choices[i]) == 0)
            return i;
    bad_line(parser, "unknown value", word);
}

struct device *described(const struct parser *parser)
{
    return parser->instance != NULL ? parser->instance : parser->gpu;
}

static void replace_text(char **text, const char *value)
{
    free(*text);
    *text = copy_text(value);
}

static void parse_driver(struct parser *parser, char **words, size_t count)
{
    (void)count;
    replace_text(&parser->scenario->driver_version, words[0]);
}

static void parse_nvml(struct parser *parser, char **words, size_t count)
{
    (void)count;
    replace_text(&parser->scenario->nvml_version, words[0]);
}

static void parse_cuda(struct parser *parser, char **words, size_t count)
{
    (void)count;
    parser->scenario->cuda_version = number_word(parser, words[0]);
}

static void parse_state(struct parser *parser, char **words, size_t count)
{
    (void)count;
    replace_text(&parser->scenario->state_path, words[0]);
}

static void parse_open_nodes(struct parser *parser, char **words, size_t count)
{
    static const char *const choices[] = {"no", "hide", "no-permission", NULL};

    (void)count;
    parser->scenario->open_nodes = (enum open_nodes)one_of(parser, words[0], choices);
}

const struct word scenario_words[] = {
    {"driver", AT_TOP | IN_GPU | IN_INSTANCE, 1, 1, false, parse_driver},
    {"nvml", AT_TOP | IN_GPU | IN_INSTANCE, 1, 1, false, parse_nvml},
    {"cuda", AT_TOP | IN_GPU | IN_INSTANCE, 1, 1, false, parse_cuda},
    {"state", AT_TOP | IN_GPU | IN_INSTANCE, 1, 1, true, parse_state},
    {"open-nodes", AT_TOP | IN_GPU | IN_INSTANCE, 1, 1, false, parse_open_nodes},
    {0},
};

static const struct word *find_word(const char *name)
{
    const struct word *tables[] = {scenario_words, device_words, fault_words};

    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const struct word *word = tables[i]; word->name != NULL; word++)
            if (strcmp(word->name, name) == 0)
                return word;
    return NULL;
}

static void check_place(const struct parser *parser, const struct word *word)
{
    enum place place = parser->instance != NULL ? IN_INSTANCE : parser->gpu != NULL ? IN_GPU : AT_TOP;

    if ((word->places & place) != 0)
        return;
    if (place == AT_TOP)
        bad_line(parser, "no \"gpu\" line stands before", word->name);
    if (place == IN_INSTANCE)
        bad_line(parser, "a MIG instance has no word (move it before the GPU's \"mig\" lines)", word->name);
    bad_line(parser, "no \"mig\" line stands before", word->name);
}

static void parse_line(struct parser *parser, char *line)
{
    char *words[MOST_WORDS];
    size_t name_length = strcspn(line, " \t");
    char *rest = line[name_length] == '\0' ? line + name_length : line + name_length + 1;
    const struct word *word;
    size_t count;

    line[name_length] = '\0';
    rest = trim(rest);
    word = find_word(line);
    if (word == NULL)
        bad_line(parser, "unknown word", line);
    check_place(parser, word);
    if (word->whole) {
        words[0] = rest;
        count = *rest != '\0';
    } else {
        count = split(rest, words, MOST_WORDS);
    }
    if (count < word->least)
        bad_line(parser, "too little follows", line);
    if (count > word->most)
        bad_line(parser, "too much follows", line);
    word->parse(parser, words, count);
}

void parse_file(struct scenario *scenario)
{
    struct parser parser = {.scenario = scenario};
    FILE *file = fopen(scenario->path, "re");
    char *line = NULL;
    size_t size = 0;

    if (file == NULL)
        die("%s: %s", scenario->path, strerror(errno));
    while (getline(&line, &size, file) >= 0) {
        char *text = trim(line);

        parser.line++;
        if (*text != '\0' && *text != '#')
            parse_line(&parser, text);
    }
    if (ferror(file))
        die("%s: %s", scenario->path, strerror(errno));
    free(line);
    fclose(file);
}
