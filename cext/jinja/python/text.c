/* The methods of Python's str, and similar filters. */
#include "jinja/python/dialect.h"
#include "jinja/python/functions.h"
#include "unicode/unicode.h"

static jinja_value text_value(jinja_text *t) {
    return jinja_of_text(t);
}
static jinja_text *text_of(jinja_env *e, jinja_value v) {
    if (v.type == JINJA_UNDEFINED) ggtok_jinja_fail_undefined(e, v);
    if (v.type != JINJA_STRING) {
        ggtok_jinja_fail(&e->arena, "expected str, not %s", ggtok_jinja_python_type(v));
    }
    return v.as.text;
}
static bool missing(jinja_value v) {
    return v.type == JINJA_ABSENT || v.type == JINJA_NONE;
}

/* ---- cases ---- */

static bool changes(uint32_t c, jinja_case how) {
    uint32_t out[3];
    return ggtok_jinja_case_of(c, how, out) != 1 || out[0] != c;
}

static bool is_cased(uint32_t c) {
    return changes(c, JINJA_LOWER) || changes(c, JINJA_UPPER);
}

typedef enum change { LOWER, UPPER, CAPITALIZE, TITLE, SWAP, FOLD } change;

/* Changes the case and keeps the labels, with one exception: in a text whose parts have
 * different flags, a character that becomes several characters loses its label. */
static jinja_text *change_case(jinja_env *e, jinja_text *t, change how) {
    jinja_builder b = ggtok_jinja_builder_new(&e->arena, t->n + 16);
    const uint8_t *p = t->data, *end = p + t->n;
    bool after = false, alike = ggtok_jinja_text_label(&e->arena, t) >= 0;
    size_t part = 0;
    jinja_charge(&e->arena, 2 + t->n);
    b.merge = true;
    while (p < end) {
        const uint8_t *start = p;
        uint32_t c = utf8_next(&p), out[3];
        jinja_case way = how == UPPER ? JINJA_UPPER : JINJA_LOWER;
        if (how == CAPITALIZE && start == t->data) way = JINJA_TITLE;
        if (how == TITLE && !after) way = JINJA_TITLE;
        if (how == SWAP) {
            bool high = changes(c, JINJA_LOWER), low = changes(c, JINJA_UPPER);
            way = high && low ? JINJA_TITLE
                  : low       ? JINJA_UPPER
                              : JINJA_LOWER; /* a title-case letter doesn't change */
        }
        if (how == FOLD) way = JINJA_FOLD;
        after = is_cased(c);
        unsigned n = ggtok_jinja_case_of(c, way, out);
        while (jinja_text_end(t, part) <= (size_t)(start - t->data)) part++;
        jinja_label own = alike || n == 1 ? jinja_text_part_label(t, part) : 0;
        for (unsigned i = 0; i < n; i++) {
            uint8_t bytes[4];
            ggtok_jinja_builder_add(&b, bytes, ggtok_utf8_encode(out[i], bytes), own);
        }
    }
    jinja_text *changed = ggtok_jinja_builder_end(&b);
    changed->safe = t->safe;
    return changed;
}

#define CASE_METHOD(name, way) \
    jinja_value name(jinja_env *e, jinja_value *v) { \
        return text_value(change_case(e, ggtok_jinja_str(e, v[0]), way)); \
    }
CASE_METHOD(ggtok_jinja_py_lower, LOWER)
CASE_METHOD(ggtok_jinja_py_upper, UPPER)
CASE_METHOD(ggtok_jinja_py_capitalize, CAPITALIZE)
CASE_METHOD(ggtok_jinja_py_title, TITLE)
CASE_METHOD(ggtok_jinja_py_swapcase, SWAP)
CASE_METHOD(ggtok_jinja_py_casefold, FOLD)

/* Implements the title filter: capitalizes after white space and after any of -({[<. */
jinja_value ggtok_jinja_py_title_filter(jinja_env *e, jinja_value *v) {
    jinja_text *t = ggtok_jinja_str(e, v[0]);
    jinja_builder b = ggtok_jinja_builder_new(&e->arena, t->n);
    b.merge = true;
    size_t begin = 0;
    bool separators = false;
    jinja_charge(&e->arena, t->n);
    for (size_t i = 0, n; i <= t->n; i += n) {
        n = i < t->n ? utf8_lead_len(t->data[i]) : 1;
        const uint8_t *p = t->data + i;
        uint32_t c = i < t->n ? utf8_next(&p) : 0;
        bool now = i < t->n && (ggtok_jinja_is_space(c) || (c < 0x80 && strchr("-({[<", (int)c)));
        if (i < t->n && now == separators) continue;
        if (i > begin) { /* the first character in upper case, the rest in lower case */
            size_t first = begin + utf8_lead_len(t->data[begin]);
            jinja_text *head = ggtok_jinja_text_cut(&e->arena, t, begin, first);
            jinja_text *tail = ggtok_jinja_text_cut(&e->arena, t, first, i);
            ggtok_jinja_builder_text(&b, change_case(e, head, UPPER));
            ggtok_jinja_builder_text(&b, change_case(e, tail, LOWER));
        }
        begin = i;
        separators = now;
    }
    return text_value(ggtok_jinja_builder_end(&b));
}

/* ---- strip ---- */

static bool in_set(jinja_env *e, const jinja_text *set, uint32_t c) {
    if (!set) return ggtok_jinja_is_space(c);
    const uint8_t *p = set->data, *end = p + set->n;
    jinja_charge(&e->arena, 1 + set->n / 8);
    while (p < end) {
        if (utf8_next(&p) == c) return true;
    }
    return false;
}

static jinja_text *strip(jinja_env *e, jinja_text *t, jinja_value chars, bool left, bool right) {
    const jinja_text *set = missing(chars) ? NULL : text_of(e, chars);
    size_t begin = 0, end = t->n;
    while (left && begin < end) {
        const uint8_t *p = t->data + begin;
        if (!in_set(e, set, utf8_next(&p))) break;
        begin = (size_t)(p - t->data);
    }
    while (right && end > begin) {
        size_t at = end - 1;
        while (at > begin && utf8_continues(t->data[at])) at--;
        const uint8_t *p = t->data + at;
        if (!in_set(e, set, utf8_next(&p))) break;
        end = at;
    }
    jinja_charge(&e->arena, (t->n - (end - begin)) / 4);
    jinja_text *cut = ggtok_jinja_text_cut(&e->arena, t, begin, end);
    cut->safe = t->safe;
    return cut;
}

jinja_value ggtok_jinja_py_strip(jinja_env *e, jinja_value *v) {
    return text_value(strip(e, ggtok_jinja_str(e, v[0]), v[1], true, true));
}
jinja_value ggtok_jinja_py_lstrip(jinja_env *e, jinja_value *v) {
    return text_value(strip(e, text_of(e, v[0]), v[1], true, false));
}
jinja_value ggtok_jinja_py_rstrip(jinja_env *e, jinja_value *v) {
    return text_value(strip(e, text_of(e, v[0]), v[1], false, true));
}

/* ---- search ---- */

static bool bounds(jinja_env *e, jinja_text *t, jinja_value start, jinja_value stop, size_t *begin,
                   size_t *end) {
    int64_t n = ggtok_jinja_chars(&e->arena, t),
            a = missing(start) ? 0 : ggtok_jinja_index(e, start),
            b = missing(stop) ? n : ggtok_jinja_index(e, stop);
    if (a < 0) a = a < -n ? 0 : a + n;
    if (b < 0) b = b < -n ? 0 : b + n;
    if (a > n) return false;
    if (b > n) b = n;
    *begin = ggtok_jinja_byte_of(&e->arena, t, (uint64_t)a);
    *end = ggtok_jinja_byte_of(&e->arena, t, (uint64_t)b);
    return a <= b;
}

static jinja_text *within(jinja_env *e, jinja_text *t, size_t end) {
    return end == t->n ? t : ggtok_jinja_text_cut(&e->arena, t, 0, end);
}

static int64_t find_within(jinja_env *e, jinja_value *v, bool last) {
    jinja_text *t = text_of(e, v[0]), *needle = text_of(e, v[1]);
    size_t begin, end, at;
    if (!bounds(e, t, v[2], v[3], &begin, &end)) return -1;
    if (last)
        at = ggtok_jinja_text_rfind(&e->arena, t, needle, end);
    else
        at = ggtok_jinja_text_find(&e->arena, within(e, t, end), needle, begin);
    if (at == SIZE_MAX || at < begin) return -1;
    return (int64_t)ggtok_jinja_char_of(&e->arena, t, at);
}

jinja_value ggtok_jinja_py_find(jinja_env *e, jinja_value *v) {
    return jinja_int(find_within(e, v, false));
}
jinja_value ggtok_jinja_py_rfind(jinja_env *e, jinja_value *v) {
    return jinja_int(find_within(e, v, true));
}
jinja_value ggtok_jinja_py_index(jinja_env *e, jinja_value *v) {
    int64_t at = find_within(e, v, false);
    if (at < 0) ggtok_jinja_fail(&e->arena, "substring not found");
    return jinja_int(at);
}
jinja_value ggtok_jinja_py_rindex(jinja_env *e, jinja_value *v) {
    int64_t at = find_within(e, v, true);
    if (at < 0) ggtok_jinja_fail(&e->arena, "substring not found");
    return jinja_int(at);
}

jinja_value ggtok_jinja_py_count(jinja_env *e, jinja_value *v) {
    jinja_text *t = text_of(e, v[0]), *needle = text_of(e, v[1]);
    size_t begin, end, found;
    int64_t n = 0;
    if (!bounds(e, t, v[2], v[3], &begin, &end)) return jinja_int(0);
    t = within(e, t, end);
    if (!needle->n) {
        jinja_text *cut = ggtok_jinja_text_cut(&e->arena, t, begin, end);
        return jinja_int((int64_t)ggtok_jinja_chars(&e->arena, cut) + 1);
    }
    for (; (found = ggtok_jinja_text_find(&e->arena, t, needle, begin)) != SIZE_MAX; n++) {
        begin = found + needle->n;
    }
    return jinja_int(n);
}

static bool has_affix(jinja_env *e, jinja_text *t, jinja_value affix, size_t begin, size_t end,
                      bool last) {
    const jinja_text *with = text_of(e, affix);
    jinja_charge_bytes(&e->arena, with->n);
    if (with->n > end - begin) return false;
    return !memcmp(t->data + (last ? end - with->n : begin), with->data, with->n);
}

/* Whether the text has the affix, or one of the affixes in a tuple. */
static bool has_any_affix(jinja_env *e, jinja_text *t, jinja_value affix, size_t begin, size_t end,
                          bool last) {
    if (affix.type != JINJA_TUPLE) return has_affix(e, t, affix, begin, end, last);
    JINJA_EACH(&e->arena, i, affix.as.list->n) {
        if (has_affix(e, t, affix.as.list->data[i], begin, end, last)) return true;
    }
    return false;
}

jinja_value ggtok_jinja_py_startswith(jinja_env *e, jinja_value *v) {
    size_t begin, end;
    jinja_text *t = text_of(e, v[0]);
    bool inside = bounds(e, t, v[2], v[3], &begin, &end);
    if (v[1].type != JINJA_TUPLE) text_of(e, v[1]);
    return jinja_bool(inside && has_any_affix(e, t, v[1], begin, end, false));
}
jinja_value ggtok_jinja_py_endswith(jinja_env *e, jinja_value *v) {
    size_t begin, end;
    jinja_text *t = text_of(e, v[0]);
    bool inside = bounds(e, t, v[2], v[3], &begin, &end);
    if (v[1].type != JINJA_TUPLE) text_of(e, v[1]);
    return jinja_bool(inside && has_any_affix(e, t, v[1], begin, end, true));
}

jinja_value ggtok_jinja_py_removeprefix(jinja_env *e, jinja_value *v) {
    jinja_text *t = text_of(e, v[0]), *with = text_of(e, v[1]);
    bool has = has_affix(e, t, v[1], 0, t->n, false);
    return text_value(ggtok_jinja_text_cut(&e->arena, t, has ? with->n : 0, t->n));
}
jinja_value ggtok_jinja_py_removesuffix(jinja_env *e, jinja_value *v) {
    jinja_text *t = text_of(e, v[0]), *with = text_of(e, v[1]);
    bool has = has_affix(e, t, v[1], 0, t->n, true);
    return text_value(ggtok_jinja_text_cut(&e->arena, t, 0, t->n - (has ? with->n : 0)));
}

/* ---- split, replace, join ---- */

static void push_cut(jinja_env *e, jinja_list *list, const jinja_text *t, size_t a, size_t b) {
    jinja_text *cut = ggtok_jinja_text_cut(&e->arena, t, a, b);
    cut->safe = t->safe;
    ggtok_jinja_list_push(&e->arena, list, text_value(cut));
}

static void split_at_space(jinja_env *e, jinja_list *list, jinja_text *t, int64_t times) {
    size_t at = 0;
    jinja_charge(&e->arena, t->n / 2);
    for (;;) {
        const uint8_t *p = t->data + at, *end = t->data + t->n, *next = p;
        while (p < end && ggtok_jinja_is_space(utf8_next(&next))) p = next;
        at = (size_t)(p - t->data);
        if (p == end) return;
        if (!times--) {
            push_cut(e, list, t, at, t->n); /* the rest keeps its trailing white space */
            return;
        }
        for (next = p; p < end && !ggtok_jinja_is_space(utf8_next(&next)); p = next) continue;
        push_cut(e, list, t, at, (size_t)(p - t->data));
        at = (size_t)(p - t->data);
    }
}

static void rsplit_at_space(jinja_env *e, jinja_list *list, jinja_text *t, int64_t times) {
    size_t end = t->n;
    jinja_charge(&e->arena, t->n / 2);
    for (;;) {
        jinja_text *rest =
            strip(e, ggtok_jinja_text_cut(&e->arena, t, 0, end), jinja_none(), false, true);
        size_t begin = end = rest->n;
        if (!end) return;
        if (!times--) {
            push_cut(e, list, t, 0, end); /* the rest keeps its leading white space */
            return;
        }
        while (begin) {
            size_t at = begin - 1;
            while (at && utf8_continues(t->data[at])) at--;
            const uint8_t *p = t->data + at;
            if (ggtok_jinja_is_space(utf8_next(&p))) break;
            begin = at;
        }
        push_cut(e, list, t, begin, end);
        end = begin;
    }
}

static void reverse(jinja_list *list) {
    for (uint32_t i = 0; i < list->n / 2; i++) {
        jinja_value v = list->data[i];
        list->data[i] = list->data[list->n - 1 - i];
        list->data[list->n - 1 - i] = v;
    }
}

static jinja_value split(jinja_env *e, jinja_value *v, bool last) {
    jinja_text *t = text_of(e, v[0]);
    int64_t times = v[2].type == JINJA_ABSENT ? -1 : ggtok_jinja_index(e, v[2]);
    jinja_list *list = ggtok_jinja_list_new(&e->arena, 0);
    if (missing(v[1])) {
        if (last)
            rsplit_at_space(e, list, t, times), reverse(list);
        else
            split_at_space(e, list, t, times);
        return jinja_of_list(list);
    }
    jinja_text *by = text_of(e, v[1]);
    size_t begin = 0, end = t->n, found;
    if (!by->n) ggtok_jinja_fail(&e->arena, "empty separator");
    while (!last && times && (found = ggtok_jinja_text_find(&e->arena, t, by, begin)) != SIZE_MAX) {
        push_cut(e, list, t, begin, found);
        begin = found + by->n;
        times--;
    }
    while (last && times && (found = ggtok_jinja_text_rfind(&e->arena, t, by, end)) != SIZE_MAX) {
        push_cut(e, list, t, found + by->n, end);
        end = found;
        times--;
    }
    push_cut(e, list, t, begin, end);
    if (last) reverse(list);
    return jinja_of_list(list);
}

jinja_value ggtok_jinja_py_split(jinja_env *e, jinja_value *v) {
    return split(e, v, false);
}
jinja_value ggtok_jinja_py_rsplit(jinja_env *e, jinja_value *v) {
    return split(e, v, true);
}

static bool is_line_end(uint32_t c) {
    return (c >= 10 && c <= 13) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
           c == 0x2029;
}

jinja_value ggtok_jinja_py_splitlines(jinja_env *e, jinja_value *v) {
    jinja_text *t = text_of(e, v[0]);
    bool keep = v[1].type != JINJA_ABSENT && ggtok_jinja_index(e, v[1]) != 0;
    jinja_list *list = ggtok_jinja_list_new(&e->arena, 0);
    const uint8_t *p = t->data, *end = p + t->n, *line = p;
    jinja_charge(&e->arena, t->n / 2);
    while (p < end) {
        const uint8_t *at = p;
        uint32_t c = utf8_next(&p);
        if (!is_line_end(c)) continue;
        if (c == '\r' && p < end && *p == '\n') p++;
        push_cut(e, list, t, (size_t)(line - t->data), (size_t)((keep ? p : at) - t->data));
        line = p;
    }
    if (line < end) push_cut(e, list, t, (size_t)(line - t->data), t->n);
    return jinja_of_list(list);
}

static jinja_value partition(jinja_env *e, jinja_value *v, bool last) {
    jinja_text *t = text_of(e, v[0]), *by = text_of(e, v[1]);
    if (!by->n) ggtok_jinja_fail(&e->arena, "empty separator");
    size_t at = last ? ggtok_jinja_text_rfind(&e->arena, t, by, t->n)
                     : ggtok_jinja_text_find(&e->arena, t, by, 0);
    size_t a = at != SIZE_MAX ? at : last ? 0 : t->n, b = at != SIZE_MAX ? at + by->n : a;
    jinja_list *list = ggtok_jinja_list_new(&e->arena, 3);
    push_cut(e, list, t, 0, a);
    push_cut(e, list, t, a, b);
    if (by->safe && b > a) list->data[1].as.text->safe = true;
    push_cut(e, list, t, b, t->n);
    return jinja_of_tuple(list);
}

jinja_value ggtok_jinja_py_partition(jinja_env *e, jinja_value *v) {
    return partition(e, v, false);
}
jinja_value ggtok_jinja_py_rpartition(jinja_env *e, jinja_value *v) {
    return partition(e, v, true);
}

jinja_text *ggtok_jinja_py_replaced(jinja_env *e, jinja_text *t, jinja_text *old, jinja_text *with,
                                    int64_t times) {
    jinja_builder b = ggtok_jinja_builder_new(&e->arena, t->n);
    size_t at = 0, found;
    b.merge = true;
    if (times < 0) times = INT64_MAX;
    if (!old->n) {
        for (; times; times--) {
            jinja_charge(&e->arena, 1);
            ggtok_jinja_builder_text(&b, with);
            if (at == t->n) break;
            size_t n = utf8_lead_len(t->data[at]);
            ggtok_jinja_builder_cut(&b, t, at, at + n);
            at += n;
        }
    }
    while (old->n && times && (found = ggtok_jinja_text_find(&e->arena, t, old, at)) != SIZE_MAX) {
        ggtok_jinja_builder_cut(&b, t, at, found);
        ggtok_jinja_builder_text(&b, with);
        at = found + old->n;
        times--;
    }
    ggtok_jinja_builder_cut(&b, t, at, t->n);
    return ggtok_jinja_builder_end(&b);
}

jinja_value ggtok_jinja_py_replace(jinja_env *e, jinja_value *v) {
    int64_t times = v[3].type == JINJA_ABSENT ? -1 : ggtok_jinja_index(e, v[3]);
    return text_value(
        ggtok_jinja_py_replaced(e, text_of(e, v[0]), text_of(e, v[1]), text_of(e, v[2]), times));
}

jinja_value ggtok_jinja_py_join(jinja_env *e, jinja_value *v) {
    jinja_text *by = text_of(e, v[0]);
    jinja_list *items = ggtok_jinja_items(e, v[1]);
    jinja_builder b = ggtok_jinja_builder_new(&e->arena, 0);
    b.merge = true;
    for (uint32_t i = 0; i < items->n; i++) {
        if (items->data[i].type != JINJA_STRING) {
            ggtok_jinja_fail(&e->arena, "sequence item %u: expected str instance, %s found", i,
                             ggtok_jinja_python_type(items->data[i]));
        }
        if (i) ggtok_jinja_builder_text(&b, by);
        ggtok_jinja_builder_text(&b, items->data[i].as.text);
    }
    return text_value(ggtok_jinja_builder_end(&b));
}

/* ---- widths ---- */

static jinja_value pad(jinja_env *e, jinja_value *v, char how) {
    jinja_arena *mem = &e->arena;
    jinja_text *t = text_of(e, v[0]);
    int64_t width = ggtok_jinja_index(e, v[1]), n = ggtok_jinja_chars(mem, t),
            room = width > n ? width - n : 0;
    jinja_text *fill = how == 'z' ? ggtok_jinja_text_of(mem, "0", 1, JINJA_FROM_TEMPLATE)
                       : v[2].type == JINJA_ABSENT
                           ? ggtok_jinja_text_of(mem, " ", 1, JINJA_FROM_TEMPLATE)
                           : text_of(e, v[2]);
    if (ggtok_jinja_chars(mem, fill) != 1)
        ggtok_jinja_fail(mem, "The fill character must be exactly one character long");
    if (room > (int64_t)JINJA_MAX_TEXT)
        ggtok_jinja_fail(mem, "a width of %lld is not supported", (long long)width);
    int64_t left = how == 'r' || how == 'z' ? room : how == 'l' ? 0 : room / 2 + (room & width & 1);
    jinja_label label = jinja_label_of(ggtok_jinja_common_label(ggtok_jinja_text_label(mem, t),
                                                                ggtok_jinja_text_label(mem, fill)));
    jinja_builder b = ggtok_jinja_builder_new(mem, t->n);
    b.merge = true;
    size_t sign = how == 'z' && t->n && (t->data[0] == '+' || t->data[0] == '-');
    jinja_charge(mem, (uint64_t)room);
    ggtok_jinja_builder_cut(&b, t, 0, sign);
    for (int64_t i = 0; i < room; i++) {
        if (i == left) ggtok_jinja_builder_cut(&b, t, sign, t->n);
        ggtok_jinja_builder_add(&b, fill->data, fill->n, label);
    }
    if (left == room) ggtok_jinja_builder_cut(&b, t, sign, t->n);
    return text_value(ggtok_jinja_builder_end(&b));
}

jinja_value ggtok_jinja_py_center(jinja_env *e, jinja_value *v) {
    return pad(e, v, 'c');
}
jinja_value ggtok_jinja_py_ljust(jinja_env *e, jinja_value *v) {
    return pad(e, v, 'l');
}
jinja_value ggtok_jinja_py_rjust(jinja_env *e, jinja_value *v) {
    return pad(e, v, 'r');
}
jinja_value ggtok_jinja_py_zfill(jinja_env *e, jinja_value *v) {
    return pad(e, v, 'z');
}

/* ---- predicates ---- */

typedef enum question {
    IS_ALPHA,
    IS_DIGIT,
    IS_ALNUM,
    IS_SPACE,
    IS_LOWER,
    IS_UPPER,
    IS_ASCII
} question;

static bool answers(question q, uint32_t c, bool *seen) {
    switch (q) {
    case IS_ALPHA: return *seen = true, ggtok_unicode_flags(c) & UNICODE_LETTER;
    case IS_DIGIT: return *seen = true, ggtok_unicode_flags(c) & UNICODE_NUMBER;
    case IS_ALNUM: return *seen = true, ggtok_unicode_flags(c) & (UNICODE_LETTER | UNICODE_NUMBER);
    case IS_SPACE: return *seen = true, ggtok_jinja_is_space(c);
    case IS_LOWER:
    case IS_UPPER: {
        jinja_case own = q == IS_LOWER ? JINJA_LOWER : JINJA_UPPER;
        *seen |= ggtok_jinja_is_case(c, own);
        return !ggtok_jinja_is_case(c, JINJA_TITLE) &&
               !ggtok_jinja_is_case(c, q == IS_LOWER ? JINJA_UPPER : JINJA_LOWER);
    }
    default: return *seen = true, c < 0x80;
    }
}

static jinja_value ask(jinja_env *e, jinja_value v, question q) {
    jinja_text *t = ggtok_jinja_str(e, v);
    const uint8_t *p = t->data, *end = p + t->n;
    bool seen = q == IS_ASCII, all = true;
    jinja_charge(&e->arena, 1 + 4 * (uint64_t)t->n); /* several table look-ups per character */
    while (all && p < end) all = answers(q, utf8_next(&p), &seen);
    return jinja_bool(all && seen);
}

#define QUESTION(name, q) \
    jinja_value name(jinja_env *e, jinja_value *v) { \
        return ask(e, v[0], q); \
    }
QUESTION(ggtok_jinja_py_isalpha, IS_ALPHA)
QUESTION(ggtok_jinja_py_isdigit, IS_DIGIT)
QUESTION(ggtok_jinja_py_isalnum, IS_ALNUM)
QUESTION(ggtok_jinja_py_isspace, IS_SPACE)
QUESTION(ggtok_jinja_py_islower, IS_LOWER)
QUESTION(ggtok_jinja_py_isupper, IS_UPPER)
QUESTION(ggtok_jinja_py_isascii, IS_ASCII)

bool ggtok_jinja_is_word(uint32_t c) {
    return c == '_' || (ggtok_unicode_flags(c) & (UNICODE_LETTER | UNICODE_NUMBER));
}

jinja_value ggtok_jinja_py_istitle(jinja_env *e, jinja_value *v) {
    jinja_text *t = text_of(e, v[0]);
    const uint8_t *p = t->data, *end = p + t->n;
    bool after = false, seen = false;
    jinja_charge(&e->arena, 1 + 4 * (uint64_t)t->n);
    while (p < end) {
        uint32_t c = utf8_next(&p);
        bool high = ggtok_jinja_is_case(c, JINJA_UPPER) || ggtok_jinja_is_case(c, JINJA_TITLE);
        bool low = ggtok_jinja_is_case(c, JINJA_LOWER);
        if ((high && after) || (low && !after)) return jinja_bool(false);
        after = high || low;
        seen |= after;
    }
    return jinja_bool(seen);
}

jinja_value ggtok_jinja_py_format(jinja_env *e, jinja_value *v) {
    jinja_args args = {"format", v[1].as.list->data, v[1].as.list->n};
    return ggtok_jinja_format_call(e, text_of(e, v[0]), &args);
}
