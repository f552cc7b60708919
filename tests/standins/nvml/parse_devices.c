/*
 * The words that describe a GPU or a MIG instance.
 */
#include <stdlib.h>
#include <string.h>

#include "parse.h"
#include "text.h"

static bool is_unsupported(const char *word)
{
    return strcmp(word, "unsupported") == 0;
}

static struct reading reading_word(const struct parser *parser, const char *word)
{
    if (is_unsupported(word))
        return (struct reading){false, 0};
    return (struct reading){true, number_word(parser, word)};
}

static uint64_t mib_word(const struct parser *parser, const char *word)
{
    return (uint64_t)number_word(parser, word) << 20;
}

static void parse_gpu(struct parser *parser, char **words, size_t count)
{
    (void)count;
    parser->gpu = scenario_add_device(parser->scenario, NULL, words[0]);
    parser->instance = NULL;
}

static void parse_mig(struct parser *parser, char **words, size_t count)
{
    (void)count;
    parser->instance = scenario_add_device(parser->scenario, parser->gpu, words[0]);
    parser->instance->gpu_instance = number_word(parser, words[1]);
    parser->instance->compute_instance = number_word(parser, words[2]);
}

static void parse_name(struct parser *parser, char **words, size_t count)
{
    struct device *device = described(parser);

    (void)count;
    free(device->name);
    device->name = copy_text(words[0]);
}

static void parse_node(struct parser *parser, char **words, size_t count)
{
    struct device *device = described(parser);

    (void)count;
    device->nodes = grow(device->nodes, device->node_count, sizeof(char *));
    device->nodes[device->node_count++] = copy_text(words[0]);
}

static void parse_slot(struct parser *parser, char **words, size_t count)
{
    (void)count;
    parser->instance->position = number_word(parser, words[0]);
}

static void parse_minor(struct parser *parser, char **words, size_t count)
{
    (void)count;
    parser->gpu->minor = reading_word(parser, words[0]);
}

static void parse_pci(struct parser *parser, char **words, size_t count)
{
    (void)count;
    if (!parse_pci_address(words[0], &parser->gpu->pci))
        bad_line(parser, "not a PCI address", words[0]);
}

static void parse_memory(struct parser *parser, char **words, size_t count)
{
    struct device *device = described(parser);

    device->memory_total = mib_word(parser, words[0]);
    device->memory_used = count > 1 ? mib_word(parser, words[1]) : 0;
    if (device->memory_used > device->memory_total)
        bad_line(parser, "more memory used than there is:", words[1]);
}

static void parse_persistence(struct parser *parser, char **words, size_t count)
{
    (void)count;
    parser->gpu->persistence = yes_or_no(parser, words[0]);
}

static void parse_mig_mode(struct parser *parser, char **words, size_t count)
{
    (void)count;
    if (is_unsupported(words[0])) {
        parser->gpu->mig_current = (struct reading){false, 0};
        return;
    }
    parser->gpu->mig_current = (struct reading){true, yes_or_no(parser, words[0])};
    parser->gpu->mig_pending = count > 1 ? yes_or_no(parser, words[1]) : parser->gpu->mig_current.value;
}

static void parse_mig_slots(struct parser *parser, char **words, size_t count)
{
    (void)count;
    parser->gpu->mig_slots = number_word(parser, words[0]);
}

static void parse_ecc(struct parser *parser, char **words, size_t count)
{
    static const char *const lifetimes[] = {"volatile", "aggregate", NULL};
    static const char *const kinds[] = {"corrected", "uncorrected", NULL};
    /* In the order of NVML's memory locations; the last has no place of its own. */
    static const char *const places[] = {
        "l1", "l2", "dram", "registers", "texture", "texture-shm", "cbu", "sram", "unplaced", NULL,
    };
    struct ecc *ecc = &parser->gpu->ecc;
    unsigned lifetime, kind, place;

    if (count == 1 && is_unsupported(words[0])) {
        ecc->supported = false;
        return;
    }
    if (count != 4)
        bad_line(parser, "\"ecc\" wants LIFETIME KIND PLACE COUNT or unsupported after it, not", words[0]);
    lifetime = one_of(parser, words[0], lifetimes);
    kind = one_of(parser, words[1], kinds);
    place = one_of(parser, words[2], places);
    if (place == NVML_MEMORY_LOCATIONS)
        ecc->unplaced[lifetime][kind] = number_word(parser, words[3]);
    else
        ecc->counts[lifetime][kind][place] = number_word(parser, words[3]);
}

static void parse_remapped_rows(struct parser *parser, char **words, size_t count)
{
    struct remapped_rows *rows = &parser->gpu->remapped_rows;

    if (count == 1 && is_unsupported(words[0])) {
        rows->supported = false;
        return;
    }
    if (count != 4)
        bad_line(parser, "\"remapped-rows\" wants four words or unsupported after it, not", words[0]);
    rows->corrected = number_word(parser, words[0]);
    rows->uncorrected = number_word(parser, words[1]);
    rows->pending = yes_or_no(parser, words[2]);
    rows->failed = yes_or_no(parser, words[3]);
}

static void parse_retired_pages_pending(struct parser *parser, char **words, size_t count)
{
    struct reading *pending = &parser->gpu->retired_pages_pending;

    (void)count;
    pending->supported = !is_unsupported(words[0]);
    pending->value = pending->supported && yes_or_no(parser, words[0]);
}

static void parse_process(struct parser *parser, char **words, size_t count)
{
    static const char *const kinds[] = {"compute", "graphics", NULL};
    struct device *device = described(parser);
    struct process process = {.pid = number_word(parser, words[0])};

    process.bytes = strcmp(words[1], "unknown") == 0 ? NVML_NO_U64 : mib_word(parser, words[1]);
    process.graphics = count > 2 && one_of(parser, words[2], kinds) == 1;
    device->processes = grow(device->processes, device->process_count, sizeof process);
    device->processes[device->process_count++] = process;
}

static void parse_temperature(struct parser *parser, char **words, size_t count)
{
    (void)count;
    parser->gpu->temperature = reading_word(parser, words[0]);
}

static void parse_utilization(struct parser *parser, char **words, size_t count)
{
    parser->gpu->utilization_gpu = reading_word(parser, words[0]);
    parser->gpu->utilization_memory = count > 1 ? number_word(parser, words[1]) : 0;
}

static void parse_power(struct parser *parser, char **words, size_t count)
{
    (void)count;
    parser->gpu->power_milliwatts = reading_word(parser, words[0]);
}

const struct word device_words[] = {
    {"gpu", AT_TOP | IN_GPU | IN_INSTANCE, 1, 1, false, parse_gpu},
    {"mig", IN_GPU | IN_INSTANCE, 3, 3, false, parse_mig},
    {"name", IN_GPU | IN_INSTANCE, 1, 1, true, parse_name},
    {"node", IN_GPU | IN_INSTANCE, 1, 1, true, parse_node},
    {"memory", IN_GPU | IN_INSTANCE, 1, 2, false, parse_memory},
    {"process", IN_GPU | IN_INSTANCE, 2, 3, false, parse_process},
    {"slot", IN_INSTANCE, 1, 1, false, parse_slot},
    {"minor", IN_GPU, 1, 1, false, parse_minor},
    {"pci", IN_GPU, 1, 1, false, parse_pci},
    {"persistence", IN_GPU, 1, 1, false, parse_persistence},
    {"mig-mode", IN_GPU, 1, 2, false, parse_mig_mode},
    {"mig-slots", IN_GPU, 1, 1, false, parse_mig_slots},
    {"ecc", IN_GPU, 1, 4, false, parse_ecc},
    {"remapped-rows", IN_GPU, 1, 4, false, parse_remapped_rows},
    {"retired-pages-pending", IN_GPU, 1, 1, false, parse_retired_pages_pending},
    {"temperature", IN_GPU, 1, 1, false, parse_temperature},
    {"utilization", IN_GPU, 1, 2, false, parse_utilization},
    {"power", IN_GPU, 1, 1, false, parse_power},
    {0},
};
