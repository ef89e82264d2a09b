#include "train/symbols.h"

#include "unicode/utf8.h"

enum { FIRST_CAP = 1024, PIECE_LENGTH = 16, TIE_BYTES = 7 };

void ggtok_symbols_free(symbols *s) {
    ggtok_mem_free(s->all);
    ggtok_mem_free(s->texts.data);
}

/* Extends the array of symbols to include `number`. Returns false if out of memory. */
static bool reach(symbols *s, uint32_t number) {
    if (number < s->n) return true;
    if (number >= s->cap) {
        size_t cap = s->cap ? s->cap : FIRST_CAP;
        while (cap <= number) cap *= 2;
        symbol *grown = ggtok_mem_realloc(s->all, mem_mul(cap, sizeof *grown));
        if (!grown) return false;
        s->all = grown;
        s->cap = cap;
    }
    memset(s->all + s->n, 0, (number + 1 - s->n) * sizeof *s->all);
    s->n = (size_t)number + 1;
    return true;
}

bool ggtok_symbols_init(symbols *s, const ggtok_merge_options *o) {
    memset(s, 0, sizeof *s);
    s->rule = o->rule;
    s->max_length = o->max_length ? o->max_length : UINT32_MAX;
    s->reserved = o->reserved;
    s->n_reserved = o->n_reserved;
    for (size_t i = 0; i < o->n_initial; i++) {
        const ggtok_symbol *from = &o->initial[i];
        if (!reach(s, from->number)) return false;
        symbol *to = &s->all[from->number];
        to->length = 1;
        to->left = to->right = from->number;
        to->script = from->script;
        to->kind = (uint8_t)from->kind;
        if (s->rule != GGTOK_RULE_PIECES) continue;
        uint8_t bytes[4];
        size_t n = ggtok_utf8_encode(from->code, bytes);
        to->text = (uint32_t)s->texts.n;
        to->n = (uint32_t)n;
        if (!bytebuf_append(&s->texts, bytes, n)) return false;
    }
    return o->first_new == 0 || reach(s, o->first_new - 1);
}

/* ---- joining ---- */

/* Whether SentencePiece accepts the joined symbols as a piece: at most 16 characters of one script,
 * digits on their own if requested, and U+2581 only at the start or in pieces that contain nothing
 * else. */
static bool is_piece(const symbol *a, const symbol *b) {
    unsigned either = a->kind | b->kind;
    if (a->length + b->length > PIECE_LENGTH) return false;
    if (either & (GGTOK_SYMBOL_ALONE | GGTOK_SYMBOL_NEVER)) return false;
    if (b->kind & GGTOK_SYMBOL_SPACE) return a->kind & b->kind & GGTOK_SYMBOL_ONLY_SPACES;
    if (a->kind & GGTOK_SYMBOL_ONLY_SPACES && a->length > 1) return false;
    return !a->script || !b->script || a->script == b->script;
}

bool ggtok_symbols_may_join(const symbols *s, uint32_t left, uint32_t right) {
    const symbol *a = &s->all[left], *b = &s->all[right];
    if (s->rule == GGTOK_RULE_PIECES) return is_piece(a, b);
    /* The limit doesn't apply to two initial symbols, as in Hugging Face's trainer. */
    return (a->length == 1 && b->length == 1) || a->length + b->length < s->max_length;
}

/* ---- new symbols ---- */

/* Whether symbol `number` was made of the initial symbols spelled[0..length). */
static bool spells(const symbols *s, uint32_t number, const uint32_t *spelled) {
    while (s->all[number].length > 1) {
        const symbol *made = &s->all[number];
        const symbol *left = &s->all[made->left];
        if (!spells(s, made->right, spelled + left->length)) return false;
        number = made->left;
    }
    return number == spelled[0];
}

int64_t ggtok_symbols_number(const symbols *s, uint32_t left, uint32_t right) {
    uint32_t n_left = s->all[left].length, n = n_left + s->all[right].length;
    size_t low = 0, high = s->n_reserved; /* find the first text of that length */
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (s->reserved[middle].n < n) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (; low < s->n_reserved && s->reserved[low].n == n; low++) {
        const ggtok_reserved *r = &s->reserved[low];
        if (!spells(s, right, r->symbols + n_left)) continue;
        if (!spells(s, left, r->symbols)) continue;
        return s->rule == GGTOK_RULE_PIECES ? -1 : (int64_t)r->number;
    }
    return (int64_t)s->n;
}

bool ggtok_symbols_make(symbols *s, uint32_t number, uint32_t left, uint32_t right) {
    if (!reach(s, number)) return false;
    const symbol *a = &s->all[left], *b = &s->all[right];
    symbol *made = &s->all[number];
    made->length = a->length + b->length;
    made->left = left;
    made->right = right;
    made->script = a->script ? a->script : b->script;
    made->kind = (uint8_t)(a->kind & b->kind & GGTOK_SYMBOL_ONLY_SPACES) |
                 (uint8_t)((a->kind | b->kind) & GGTOK_SYMBOL_SPACE);
    s->total_length += made->length;
    if (s->rule != GGTOK_RULE_PIECES) return true;
    made->text = (uint32_t)s->texts.n;
    made->n = a->n + b->n;
    if (!bytebuf_reserve(&s->texts, made->n)) return false;
    memcpy(s->texts.data + made->text, s->texts.data + a->text, a->n);
    memcpy(s->texts.data + made->text + a->n, s->texts.data + b->text, b->n);
    s->texts.n += made->n;
    return true;
}

/* ---- ties ---- */

static const uint8_t *text_of(const symbols *s, uint32_t number) {
    return s->texts.data + s->all[number].text;
}

/* Returns byte i of a pair's text. */
static uint8_t byte_of(const symbols *s, const uint32_t pair[2], uint32_t i) {
    uint32_t n = s->all[pair[0]].n;
    return i < n ? text_of(s, pair[0])[i] : text_of(s, pair[1])[i - n];
}

uint64_t ggtok_symbols_tie(const symbols *s, uint32_t left, uint32_t right) {
    if (s->rule != GGTOK_RULE_PIECES) return (uint64_t)left << 32 | right;
    const uint32_t pair[2] = {left, right};
    uint32_t n = s->all[left].n + s->all[right].n;
    uint64_t tie = s->all[left].length + s->all[right].length; /* fewer characters first */
    for (uint32_t i = 0; i < TIE_BYTES; i++) tie = tie << 8 | (i < n ? byte_of(s, pair, i) : 0);
    return tie;
}

bool ggtok_symbols_before(const symbols *s, const uint32_t a[2], const uint32_t b[2]) {
    if (s->rule == GGTOK_RULE_PIECES) {
        uint32_t n = s->all[a[0]].n + s->all[a[1]].n, m = s->all[b[0]].n + s->all[b[1]].n;
        for (uint32_t i = TIE_BYTES; i < n && i < m; i++) {
            uint8_t x = byte_of(s, a, i), y = byte_of(s, b, i);
            if (x != y) return x < y;
        }
        if (n != m) return n < m;
    }
    return a[0] != b[0] ? a[0] < b[0] : a[1] < b[1];
}
