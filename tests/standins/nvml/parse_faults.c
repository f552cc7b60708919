/*
 * The words that say what goes wrong: KIND CALL [TARGET] [VALUE] [first-inits N | first-ms T].
 */
#include <string.h>

#include "parse.h"
#include "text.h"

static bool is_system_call(const char *name)
{
#define DIFFERENT(call) && strcmp(name, #call) != 0
#define NOTHING(call)
    return !(true NVML_CALLS(DIFFERENT, NOTHING));
#undef NOTHING
#undef DIFFERENT
}

static enum call call_word(const struct parser *parser, const char *name)
{
    static const char *const names[] = {
#define AS_TEXT(call) #call,
        NVML_CALLS(AS_TEXT, AS_TEXT)
#undef AS_TEXT
    };

    if (strcmp(name, "*") == 0)
        return CALL_ANY;
    if (strcmp(name, "nvmlErrorString") == 0)
        bad_line(parser, "this call returns no error, so none can be made to happen:", name);
    for (unsigned i = 0; i < CALL_COUNT; i++)
        if (strcmp(names[i], name) == 0)
            return (enum call)i;
    bad_line(parser, "no such call", name);
}

static nvml_status status_word(const struct parser *parser, const char *name)
{
#define COMPARE(status, number, words) \
    if (strcmp(name, #status) == 0) \
        return status;
    NVML_RETURNS(COMPARE)
#undef COMPARE
    bad_line(parser, "no such NVML error", name);
}

/* Takes the window off the end of the words; returns how many are left. */
static size_t take_window(const struct parser *parser, struct fault *fault, char **words, size_t count)
{
    if (count < 2)
        return count;
    if (strcmp(words[count - 2], "first-inits") == 0)
        fault->window = WINDOW_FIRST_INITS;
    else if (strcmp(words[count - 2], "first-ms") == 0)
        fault->window = WINDOW_FIRST_MS;
    else
        return count;
    fault->window_size = number_word(parser, words[count - 1]);
    return count - 2;
}

static void add_fault(struct parser *parser, struct fault fault)
{
    struct scenario *scenario = parser->scenario;

    fault.line = parser->line;
    scenario->faults = grow(scenario->faults, scenario->fault_count, sizeof fault);
    scenario->faults[scenario->fault_count++] = fault;
}

/* CALL [TARGET], followed by as many values as the kind of fault has; these are what is returned. */
static char **take_call(struct parser *parser, struct fault *fault, char **words, size_t count, size_t values)
{
    if (count < 1 + values)
        bad_line(parser, "too little follows", words[0]);
    if (count > 2 + values)
        bad_line(parser, "too much follows", words[0]);
    fault->call = call_word(parser, words[0]);
    if (count == 2 + values) {
        if (is_system_call(words[0]))
            bad_line(parser, "this call concerns no single GPU:", words[0]);
        fault->target = copy_text(words[1]);
    }
    return words + count - values;
}

static void parse_fail(struct parser *parser, char **words, size_t count)
{
    struct fault fault = {.kind = FAULT_FAIL};

    count = take_window(parser, &fault, words, count);
    fault.status = status_word(parser, take_call(parser, &fault, words, count, 1)[0]);
    add_fault(parser, fault);
}

static void parse_sleep(struct parser *parser, char **words, size_t count)
{
    struct fault fault = {.kind = FAULT_SLEEP};

    count = take_window(parser, &fault, words, count);
    fault.milliseconds = number_word(parser, take_call(parser, &fault, words, count, 1)[0]);
    add_fault(parser, fault);
}

static void parse_plain(struct parser *parser, enum fault_kind kind, char **words, size_t count)
{
    struct fault fault = {.kind = kind};

    count = take_window(parser, &fault, words, count);
    take_call(parser, &fault, words, count, 0);
    add_fault(parser, fault);
}

static void parse_hang(struct parser *parser, char **words, size_t count)
{
    parse_plain(parser, FAULT_HANG, words, count);
}

static void parse_hang_hard(struct parser *parser, char **words, size_t count)
{
    parse_plain(parser, FAULT_HANG_HARD, words, count);
}

static void parse_crash(struct parser *parser, char **words, size_t count)
{
    parse_plain(parser, FAULT_CRASH, words, count);
}

static void parse_no_gpus(struct parser *parser, char **words, size_t count)
{
    struct fault fault = {.kind = FAULT_NO_GPUS, .call = CALL_ANY};

    if (take_window(parser, &fault, words, count) != 0)
        bad_line(parser, "\"no-gpus\" takes first-inits N or first-ms T, not", words[0]);
    add_fault(parser, fault);
}

#define ANYWHERE (AT_TOP | IN_GPU | IN_INSTANCE)

const struct word fault_words[] = {
    {"fail", ANYWHERE, 2, 5, false, parse_fail},
    {"sleep", ANYWHERE, 2, 5, false, parse_sleep},
    {"hang", ANYWHERE, 1, 4, false, parse_hang},
    {"hang-hard", ANYWHERE, 1, 4, false, parse_hang_hard},
    {"crash", ANYWHERE, 1, 4, false, parse_crash},
    {"no-gpus", ANYWHERE, 0, 2, false, parse_no_gpus},
    {0},
};
