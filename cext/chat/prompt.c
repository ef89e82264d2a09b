/* Changes to the beginning and end of a prompt. Text that is inserted because of other text in the
 * prompt is the template's own only if that other text is; otherwise a message could imitate that
 * text to write a control token. */
#include "chat/policy.h"

bool ggtok_chat_covers(const jinja_text *t, size_t begin, size_t end, jinja_label label) {
    size_t at = 0;
    for (size_t i = 0; i < jinja_text_count(t) && begin < end; i++) {
        size_t part_end = jinja_text_end(t, i);
        if (at < end && part_end > begin && !(jinja_text_part_label(t, i) & label)) return false;
        at = part_end;
    }
    return true;
}

static bool starts_with(const jinja_text *t, const void *s, size_t n) {
    return n && n <= t->n && !memcmp(t->data, s, n);
}

static bool ends_with(const jinja_text *t, const void *s, size_t n) {
    return n <= t->n && !memcmp(t->data + t->n - n, s, n);
}

jinja_text *ggtok_chat_drop_ends(jinja_arena *mem, jinja_text *t, const jinja_text *bos,
                                 const jinja_text *eos, bool only_own) {
    size_t begin = 0, end = t->n;
    jinja_charge(mem, jinja_text_count(t) / 8);
    if (bos && starts_with(t, bos->data, bos->n) &&
        (!only_own || ggtok_chat_covers(t, 0, bos->n, JINJA_FROM_TEMPLATE)))
        begin = bos->n;
    if (eos && eos->n && eos->n <= t->n - begin && ends_with(t, eos->data, eos->n) &&
        (!only_own || ggtok_chat_covers(t, t->n - eos->n, t->n, JINJA_FROM_TEMPLATE)))
        end = t->n - eos->n;
    return begin || end < t->n ? ggtok_jinja_text_cut(mem, t, begin, end) : t;
}

jinja_text *ggtok_chat_end_turn(jinja_arena *mem, jinja_text *t, const char *turn,
                                const char *answer) {
    size_t n = strlen(turn);
    if (!ends_with(t, turn, n)) return t;
    bool is_own = ggtok_chat_covers(t, t->n - n, t->n, JINJA_FROM_TEMPLATE);
    jinja_text *more =
        ggtok_jinja_text_of(mem, answer, strlen(answer), is_own ? JINJA_FROM_TEMPLATE : 0);
    return ggtok_jinja_text_concat(mem, t, more);
}

jinja_text *ggtok_chat_replace_last(jinja_arena *mem, jinja_text *t, const char *last,
                                    const char *replacement) {
    const jinja_text needle = {.data = (const uint8_t *)last, .n = (uint32_t)strlen(last)};
    size_t at = ggtok_jinja_text_rfind(mem, t, &needle, t->n);
    if (at == SIZE_MAX) return t;
    size_t end = at + needle.n;
    jinja_label label = 0;
    if (ggtok_chat_covers(t, at, end, JINJA_FROM_TEMPLATE)) label |= JINJA_FROM_TEMPLATE;
    if (ggtok_chat_covers(t, at, end, JINJA_GENERATED)) label |= JINJA_GENERATED;
    jinja_builder b = ggtok_jinja_builder_new(mem, t->n + strlen(replacement));
    ggtok_jinja_builder_cut(&b, t, 0, at);
    ggtok_jinja_builder_add(&b, replacement, strlen(replacement), label);
    ggtok_jinja_builder_cut(&b, t, end, t->n);
    return ggtok_jinja_builder_end(&b);
}
