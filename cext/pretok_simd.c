/*
 * The hot patterns by classes of 64 bytes at a time.
 *
 * A window begins where a word begins, so nothing in front of it matters. Each
 * class of ASCII becomes a 64-bit mask (bit i: byte i of the window), and where
 * words start follows from shifts and sums of those masks: DESIGN.md (Windows)
 * derives the formulas from the patterns. What a window can't tell, its last word
 * and whatever comes behind a byte that isn't ASCII, is left to the next window,
 * and a window that tells nothing to the pattern's automaton, which also is what
 * tests judge this file by.
 */
#include "pretok_simd.h"

#include "window.h"

#if defined(__SSE2__) || defined(_M_X64) || (defined(__ARM_NEON) && defined(__aarch64__))
#define PRETOK_WINDOWS 1
#endif

#ifdef PRETOK_WINDOWS

/* ---- patterns ---- */

/* What a pattern does, apart from what they all share: constants, so that each
 * pattern gets code of its own. */
typedef struct shape {
    bool any_prefix;    /* [^\r\n\p{L}\p{N}]? leads a word of letters; else only a space does,
                            and it leads numbers, too */
    bool ascii_led;     /* ... but marks lead only letters of ASCII, and must be of ASCII, too */
    bool newline_words; /* \s*[\r\n]+ */
    bool joined;        /* newlines join the marks in front of them */
    bool slashes;       /* ... and so do slashes behind those */
    bool no_controls;   /* control characters are in no class: left to the automaton */
    bool no_backtick;   /* nor are backticks */
    bool no_digits;     /* nor are digits */
    bool marks_apart;   /* marks are pieces of their own: no space leads them, and white space
                            in front of them is one word */
    bool cased;         /* a lower-case letter ends a word in front of an upper-case one */
    enum {
        NO_CONTRACTIONS,
        OWN_WORD,
        SUFFIX
    } contractions;    /* SUFFIX: part of the word in
                            front */
    bool either_case;  /* ... in either case */
    unsigned digits;   /* most digits a word has; 0: no limit */
    bool led_digits;   /* ... and a space leads those that are fewer */
    bool digits_apart; /* numbers are pieces of their own: white space ends in front of one */
    bool han;          /* Chinese letters are words, which nothing leads */
    bool han_apart;    /* ... and pieces of their own */
    enum { NO_GAPS, CODER, LLM } gaps; /* deepseek's first patterns, see gap_starts */
} shape;

/* ---- classes ---- */

typedef struct classes {
    uint64_t letter, upper, digit, space, other_white, newline, quote, slash, control, symbol;
    uint64_t high, inner; /* bytes from 0x80 on; those among them that continue a character */
    uint64_t han;         /* letters that patterns with `han` tell from others */
} classes;                /* white space is space | other_white | newline, three disjoint sets */

#if defined(__SSE2__) || defined(_M_X64)

/* Bytes of x in [lo, lo + n): a signed comparison after moving the range to -128. */
ALWAYS_INLINE __m128i in_range(__m128i x, uint8_t lo, uint8_t n) {
    __m128i moved = _mm_add_epi8(x, _mm_set1_epi8((char)(0x80 - lo)));
    return _mm_cmplt_epi8(moved, _mm_set1_epi8((char)(0x80 + n)));
}

ALWAYS_INLINE uint64_t bits(__m128i x, int at) {
    return (uint64_t)(uint32_t)_mm_movemask_epi8(x) << at;
}

ALWAYS_INLINE __m128i equal(__m128i x, char c) {
    return _mm_cmpeq_epi8(x, _mm_set1_epi8(c));
}

/* $ + < = > ^ ` | ~: ASCII's \p{S}. */
ALWAYS_INLINE __m128i symbols(__m128i x) {
    __m128i pipe_or_tilde = equal(_mm_or_si128(x, _mm_set1_epi8('|' ^ '~')), '~');
    __m128i rest = _mm_or_si128(_mm_or_si128(equal(x, '$'), equal(x, '+')),
                                _mm_or_si128(equal(x, '^'), equal(x, '`')));
    return _mm_or_si128(_mm_or_si128(in_range(x, '<', 3), pipe_or_tilde), rest);
}

ALWAYS_INLINE classes classify(const uint8_t *p, shape s) {
    classes c = {0};
    for (int i = 0; i < WINDOW; i += 16) {
        __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(p + i));
        c.high |= bits(x, i);
        c.inner |= bits(_mm_cmplt_epi8(x, _mm_set1_epi8((char)0xC0)), i);
        c.letter |= bits(in_range(_mm_or_si128(x, _mm_set1_epi8(0x20)), 'a', 26), i);
        if (s.cased) c.upper |= bits(in_range(x, 'A', 26), i);
        c.digit |= bits(in_range(x, '0', 10), i);
        c.space |= bits(equal(x, ' '), i);
        c.other_white |= bits(in_range(x, '\t', 5), i);
        c.newline |= bits(_mm_or_si128(equal(x, '\n'), equal(x, '\r')), i);
        c.quote |= bits(equal(x, '\''), i);
        if (s.slashes) c.slash |= bits(equal(x, '/'), i);
        if (s.no_controls) {
            c.control |=
                bits(_mm_or_si128(in_range(x, 0, 0x20), _mm_cmpeq_epi8(x, _mm_set1_epi8(0x7F))), i);
        }
        if (s.no_backtick) c.control |= bits(equal(x, '`'), i);
        if (s.gaps == CODER) c.symbol |= bits(symbols(x), i);
    }
    c.other_white &= ~c.newline;
    return c;
}

#else

/* Four vectors of 0x00 and 0xFF bytes -> 64 bits. */
ALWAYS_INLINE uint64_t bits(uint8x16_t a, uint8x16_t b, uint8x16_t c, uint8x16_t d) {
    const uint8x16_t weight = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t ab = vpaddq_u8(vandq_u8(a, weight), vandq_u8(b, weight));
    uint8x16_t cd = vpaddq_u8(vandq_u8(c, weight), vandq_u8(d, weight));
    uint8x16_t abcd = vpaddq_u8(ab, cd);
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(abcd, abcd)), 0);
}

ALWAYS_INLINE uint8x16_t in_range(uint8x16_t x, uint8_t lo, uint8_t n) {
    return vcltq_u8(vsubq_u8(x, vdupq_n_u8(lo)), vdupq_n_u8(n));
}

ALWAYS_INLINE uint8x16_t equal(uint8x16_t x, char c) {
    return vceqq_u8(x, vdupq_n_u8((uint8_t)c));
}

/* $ + < = > ^ ` | ~: ASCII's \p{S}. */
ALWAYS_INLINE uint8x16_t symbols(uint8x16_t x) {
    uint8x16_t pipe_or_tilde = equal(vorrq_u8(x, vdupq_n_u8('|' ^ '~')), '~');
    uint8x16_t rest =
        vorrq_u8(vorrq_u8(equal(x, '$'), equal(x, '+')), vorrq_u8(equal(x, '^'), equal(x, '`')));
    return vorrq_u8(vorrq_u8(in_range(x, '<', 3), pipe_or_tilde), rest);
}

ALWAYS_INLINE classes classify(const uint8_t *p, shape s) {
    uint8x16_t x[4], letter[4];
    for (int i = 0; i < 4; i++) {
        x[i] = vld1q_u8(p + 16 * i);
        letter[i] = in_range(vorrq_u8(x[i], vdupq_n_u8(0x20)), 'a', 26);
    }
#define EACH(f) bits(f(x[0]), f(x[1]), f(x[2]), f(x[3]))
#define HIGH(v) vcgeq_u8(v, vdupq_n_u8(0x80))
#define INNER(v) in_range(v, 0x80, 0x40)
#define UPPER(v) in_range(v, 'A', 26)
#define DIGIT(v) in_range(v, '0', 10)
#define SPACE(v) equal(v, ' ')
#define WHITE(v) in_range(v, '\t', 5)
#define NEWLINE(v) vorrq_u8(equal(v, '\n'), equal(v, '\r'))
#define QUOTE(v) equal(v, '\'')
#define SLASH(v) equal(v, '/')
#define BACKTICK(v) equal(v, '`')
#define CONTROL(v) vorrq_u8(in_range(v, 0, 0x20), vceqq_u8(v, vdupq_n_u8(0x7F)))
    classes c = {.high = EACH(HIGH),
                 .inner = EACH(INNER),
                 .digit = EACH(DIGIT),
                 .space = EACH(SPACE),
                 .newline = EACH(NEWLINE),
                 .quote = EACH(QUOTE)};
    c.letter = bits(letter[0], letter[1], letter[2], letter[3]);
    if (s.cased) c.upper = EACH(UPPER);
    if (s.slashes) c.slash = EACH(SLASH);
    if (s.no_controls) c.control = EACH(CONTROL);
    if (s.no_backtick) c.control |= EACH(BACKTICK);
    if (s.gaps == CODER) c.symbol = EACH(symbols);
    c.other_white = EACH(WHITE) & ~c.newline;
    return c;
}

#endif

#ifdef NEWER_X86

static inline NEWEST classes classify_newest(const uint8_t *p, shape s) {
#define IN(x, lo, n) \
    _mm512_cmplt_epu8_mask(_mm512_sub_epi8(x, _mm512_set1_epi8(lo)), _mm512_set1_epi8(n))
#define IS(x, c) _mm512_cmpeq_epi8_mask(x, _mm512_set1_epi8(c))
    const __m512i x = _mm512_loadu_si512(p);
    classes c = {0};
    c.high = _mm512_movepi8_mask(x);
    c.inner = _mm512_cmplt_epi8_mask(x, _mm512_set1_epi8((char)0xC0));
    c.letter = IN(_mm512_or_si512(x, _mm512_set1_epi8(0x20)), 'a', 26);
    if (s.cased) c.upper = IN(x, 'A', 26);
    c.digit = IN(x, '0', 10);
    c.space = IS(x, ' ');
    c.newline = IS(x, '\n') | IS(x, '\r');
    c.other_white = IN(x, '\t', 5) & ~c.newline;
    c.quote = IS(x, '\'');
    if (s.slashes) c.slash = IS(x, '/');
    if (s.no_controls) c.control = IN(x, 0, 0x20) | IS(x, 0x7F);
    if (s.no_backtick) c.control |= IS(x, '`');
    if (s.gaps == CODER) {
        c.symbol = IN(x, '<', 3) | IS(x, '$') | IS(x, '+') | IS(x, '^') | IS(x, '`') | IS(x, '|') |
                   IS(x, '~');
    }
    return c;
#undef IN
#undef IS
}

#else
#define classify_newest classify
#endif

/* The runs of `run` that begin at the bits of `from` (each the first of its run),
 * whole: adding `from` carries through them and nothing else. */
ALWAYS_INLINE uint64_t runs_from(uint64_t run, uint64_t from) {
    return run & ~(run + from);
}

/* What follows those runs. */
ALWAYS_INLINE uint64_t runs_behind(uint64_t run, uint64_t from) {
    return (run + from) & ~run;
}

/* ---- contractions ---- */

/* Length of the contraction at p (p[0] is an apostrophe, 3 bytes can be read), or 0. */
ALWAYS_INLINE unsigned contraction(const uint8_t *p, bool upper) {
    uint8_t a = p[1], b = p[2];
    if (upper) a |= 0x20, b |= 0x20;
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
    return ((a == 'r' || a == 'v') && b == 'e') || (a == 'l' && b == 'l') ? 3 : 0;
}

/* ---- characters beyond ASCII ---- */

/* Those of `leads` that begin nothing but letters: by byte, of which a window has few. */
ALWAYS_INLINE uint64_t letters_only(const pretok_high *high, const uint8_t *p, uint64_t leads) {
    uint64_t letters = 0;
    while (leads) {
        uint8_t lead = p[bits_lowest(leads)];
        uint64_t same = window_range(p, lead, 1);
        leads &= ~same;
        if (high->leads[lead & 15] >> (lead >> 4 & 3) & 1) letters |= same;
    }
    return letters;
}

#ifdef NEWER_X86

/* The same of all bytes, by looking up both their halves. */
static NEWER uint64_t letters_only_newer(const pretok_high *high, const uint8_t *p) {
    const __m256i rows =
        _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)high->leads));
    const __m256i row =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 8));
    const __m256i low_half = _mm256_set1_epi8(15);
    uint64_t others = 0;
    for (int i = 0; i < WINDOW; i += 32) {
        __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)(p + i));
        __m256i high_half = _mm256_and_si256(_mm256_srli_epi16(x, 4), low_half);
        __m256i both = _mm256_and_si256(_mm256_shuffle_epi8(rows, _mm256_and_si256(x, low_half)),
                                        _mm256_shuffle_epi8(row, high_half));
        __m256i none = _mm256_cmpeq_epi8(both, _mm256_setzero_si256());
        others |= (uint64_t)(uint32_t)_mm256_movemask_epi8(none) << i;
    }
    return ~others;
}

static inline NEWEST uint64_t letters_only_newest(const pretok_high *high, const uint8_t *p) {
    const __m512i rows =
        _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)high->leads));
    const __m512i row =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 8));
    const __m512i low_half = _mm512_set1_epi8(15);
    __m512i x = _mm512_loadu_si512(p);
    __m512i high_half = _mm512_and_si512(_mm512_srli_epi16(x, 4), low_half);
    return _mm512_test_epi8_mask(_mm512_shuffle_epi8(rows, _mm512_and_si512(x, low_half)),
                                 _mm512_shuffle_epi8(row, high_half));
}

#else
#define letters_only_newer(high, p) 0
#define letters_only_newest(high, p) 0
#endif

/* Gives the letters beyond ASCII among the window's first `known` bytes their bits.
 * Returns where the first character is that is neither letter nor mark, or that the
 * window cuts. */
ALWAYS_INLINE unsigned add_high(const pretok_high *high, const uint8_t *p, classes *c,
                                unsigned known, bool has_han, machine on) {
    uint64_t leads = c->high & ~c->inner & window_first(known);
    if (!leads) return known;
    unsigned last = bits_highest(leads);
    if (utf8_lead_len(p[last]) > known - last) {
        leads ^= (uint64_t)1 << last;
        known = last;
    }
    uint64_t letter = on == MACHINE_NEWEST  ? letters_only_newest(high, p)
                      : on == MACHINE_NEWER ? letters_only_newer(high, p)
                                            : letters_only(high, p, leads);
    uint64_t two = leads & ~letter & window_range_on(on, p, 0xC0, 0x20);
    uint64_t four = leads & window_range_on(on, p, 0xF0, 0x10); /* rare: left to the automaton */
    uint64_t three = leads & ~letter & ~two & ~four, strange = 0;
    letter &= leads;
    /* No branch depends on what a character is: punctuation can't be predicted. */
    for (; two; two &= two - 1) {
        unsigned at = bits_lowest(two), bit = p[at + 1] & 0x3F;
        const uint64_t *planes = &high->planes[2 * (p[at] & 0x1F)];
        letter |= (planes[0] >> bit & 1) << at;
        strange |= (planes[1] >> bit & 1) << at;
    }
    for (; three; three &= three - 1) {
        unsigned at = bits_lowest(three), bit = p[at + 2] & 0x3F;
        const uint64_t *planes = &high->planes[2 * ((p[at] & 0xF) << 6 | (p[at + 1] & 0x3F))];
        letter |= (planes[0] >> bit & 1) << at;
        strange |= (planes[1] >> bit & 1) << at;
    }
    if (has_han) {
        uint64_t han = letter & strange;
        letter &= ~han;
        strange &= ~han;
        c->han = han | han << 1 | han << 2; /* they have three bytes */
    }
    strange |= four;
    for (int i = 1; i < 4; i++) letter |= letter << 1 & c->inner;
    c->letter |= letter;
    return strange ? bits_lowest(strange) : known;
}

/* Where words start if they are runs of a class and what leads them. What is in doubt ends
 * what is *known; *done is where the last contraction ends. */
ALWAYS_INLINE uint64_t run_starts(const classes *c, const uint8_t *p, shape s, unsigned *known,
                                  unsigned *done) {
    const uint64_t letter = c->letter, digit = c->digit, newline = c->newline, han = c->han;
    const uint64_t blank = c->space | c->other_white; /* white, but no newline */
    const uint64_t white = blank | newline;
    const uint64_t mark = ~(letter | digit | white | han);
    const uint64_t mark_start = mark & ~(mark << 1);
    uint64_t starts;

    /* words of letters, and what leads them */
    uint64_t letter_start = letter & ~(letter << 1);
    if (s.any_prefix) {
        uint64_t lone_mark = mark_start & ~(c->space << 1); /* begins a word of its own */
        if (s.ascii_led) {
            const uint64_t ascii = letter & ~c->high;
            uint64_t led = (lone_mark & ~c->high) << 1 & ascii;
            letter_start |= runs_behind(ascii, led) & letter;
            letter_start &= ~(blank << 1 | led);
        } else {
            if (c->high) {
                for (int i = 1; i < 4; i++)
                    lone_mark |= lone_mark << 1 & c->inner & mark; /* all of it */
            }
            letter_start &= ~((blank | lone_mark) << 1);
        }
    } else {
        letter_start &= ~(c->space << 1);
    }
    if (s.cased) {
        letter_start |= c->upper & (letter & ~c->upper) << 1;
        uint64_t doubt = c->upper & (letter & c->high) << 1; /* behind a letter of no case */
        if (doubt && bits_lowest(doubt) < *known) *known = bits_lowest(doubt);
    }
    starts = letter_start | (s.marks_apart ? mark_start : mark_start & ~(c->space << 1));

    /* numbers */
    uint64_t digit_start = digit & ~(digit << 1);
    if (s.digits == 1) {
        starts |= digit;
    } else if (s.digits == 3) {
        uint64_t three = digit & digit << 1 & digit << 2 & digit << 3;
        for (uint64_t at = digit_start; at; at = at << 3 & three) starts |= at;
    } else {
        starts |= digit_start & ~(c->space << 1);
    }
    if (s.led_digits) { /* a run that may go on is in the window's last word */
        starts &= ~(digit_start & c->space << 1 & ~(digit >> 1 & digit >> 2));
    }
    starts |= han & ~(han << 1);
    const uint64_t apart =
        (s.digits_apart ? digit : 0) | (s.marks_apart ? mark : 0) | (s.han_apart ? han : 0);
    const uint64_t followed = ~(white | apart);

    /* white space */
    uint64_t last_blank = blank & followed >> 1; /* in front of something else */
    if (s.newline_words) {
        uint64_t joined = s.joined ? runs_from(newline, mark << 1 & newline) : 0;
        uint64_t tail = blank & newline << 1; /* what follows the last newline of a run */
        uint64_t inner = tail & ~(joined << 1);
        uint64_t more = (blank + inner) & ~blank & newline; /* ... unless it wasn't the last */
        while (more) {
            unsigned end = bits_lowest(more);
            tail &= ~((uint64_t)2 << bits_highest(~blank & (((uint64_t)1 << end) - 1)));
            more &= more - 1;
        }
        starts |= (white & ~(white << 1) & ~joined) | tail | last_blank;
        if (s.slashes && (joined << 1 & c->slash)) {
            unsigned at = bits_lowest(joined << 1 & c->slash);
            if (at < *known) *known = at;
        }
    } else {
        starts |= (white & ~(white << 1)) | (white & followed >> 1);
    }

    /* contractions: an apostrophe where a word may start */
    if (s.contractions) {
        const bool suffix = s.contractions == SUFFIX;
        uint64_t quotes = c->quote & mark_start & ~(c->space << 1);
        quotes &= suffix ? letter << 1 : letter >> 1;
        for (; quotes; quotes &= quotes - 1) {
            unsigned at = bits_lowest(quotes), n;
            if (at > WINDOW - 4) { /* can't be read here */
                if (at < *known) *known = at;
                break;
            }
            if (suffix && *done && at == *done) continue; /* a word has one; this leads another */
            if (!(n = contraction(p + at, s.either_case))) continue;
            *done = at + n;
            uint64_t inside = ((uint64_t)1 << n) - (suffix ? 1 : 2); /* starts at most at `at` */
            starts &= ~(inside << at);
            starts |= letter & (uint64_t)1 << *done;
        }
    }
    return starts;
}

/* Where words start if white space leads words one character at a time, newlines are words,
 * and what is left between words and numbers are gaps:
 *
 *   CODER   [\r\n] | \s?\p{L}+ | \s?\p{P}+ | \p{N}, symbols being in the gaps
 *   LLM     [\r\n] | \s?[a-z]+ | \s? other letters + | \s? marks + | \p{N}+
 */
ALWAYS_INLINE uint64_t gap_starts(const classes *c, shape s, unsigned known) {
    const bool coder = s.gaps == CODER;
    const uint64_t blank = c->space | c->other_white;
    const uint64_t not_mark = c->letter | c->digit | blank | c->newline | c->han | c->symbol;
    const uint64_t mark = ~not_mark & window_first(known);
    const uint64_t other = coder ? 0 : c->letter & c->high, letter = c->letter & ~other;
    const uint64_t first =
        (letter & ~(letter << 1)) | (other & ~(other << 1)) | (mark & ~(mark << 1));
    const uint64_t lead = blank & (letter | other | mark | (coder ? c->han : 0)) >> 1;
    const uint64_t gap = (blank & ~lead) | c->symbol;
    return c->newline | lead | (first & ~(lead << 1)) | (c->han & ~(c->han << 1)) |
           (gap & ~(gap << 1)) | (c->digit & ~(coder ? 0 : c->digit << 1));
}

/* Where words start in the window at p, of which `left` bytes are text, with spaces behind
 * them, as far as it tells; never bit 0. At the text's end a word starts, too. If none
 * does, and what is known ends with a letter, *last_letter is where that begins. */
ALWAYS_INLINE uint64_t word_starts(const pretok_high *high, const uint8_t *p, unsigned left,
                                   shape s, machine on, unsigned *last_letter) {
    unsigned known = left, done = 0;
    classes c = on == MACHINE_NEWEST ? classify_newest(p, s) : classify(p, s);
    uint64_t strange = c.control & ~c.other_white & ~c.newline;
    if (s.no_digits) strange |= c.digit;
    strange &= window_first(known);
    if (strange) known = bits_lowest(strange);
    if (c.high) known = add_high(high, p, &c, known, s.han, on);
    uint64_t starts = s.gaps ? gap_starts(&c, s, known) : run_starts(&c, p, s, &known, &done);

    /* A white run that reaches the end of what is known may go on: of it, only
     * the start counts. Those that reach the text's end don't: as if there were nothing
     * but space behind it. */
    const uint64_t white = c.space | c.other_white | c.newline;
    uint64_t in_sight = window_first(known);
    if (known == left && left < WINDOW) {
        in_sight |= (uint64_t)1 << left;
        starts |= (uint64_t)1 << left;
    } else if (known && white >> (known - 1) & 1) {
        uint64_t before = ~white & in_sight;
        unsigned run = before ? bits_highest(before) + 1 : 0;
        in_sight = ((uint64_t)2 << run) - 1;
    }
    starts &= in_sight & ~(uint64_t)1;
    /* Where a word that began with a mark ends may depend on that. */
    const bool by_letters = !s.ascii_led || ((c.letter | c.han) & 1);
    if (!starts && !done && known && by_letters && (c.letter | c.han) >> (known - 1) & 1) {
        *last_letter = bits_highest(in_sight & ~c.inner);
    }
    return starts;
}

ALWAYS_INLINE size_t cut(const pretok_scanner *self, shape s, machine on, const uint8_t *text,
                         pretok_stage *st, size_t *ends, size_t max) {
    enum { FEW = 2, MANY = 64, LEAST = 2 };
    size_t n = 0, slow = FEW;
    while (st->pos < st->end) {
        size_t pos = st->pos; /* the next window's: where a word begins, or in its letters */
        slow = slow < MANY ? 2 * slow : MANY; /* it pays to try seldom what fails often */
        while (max - n >= WINDOW && st->end - pos >= LEAST && !st->match_end) {
            const uint8_t *p = text + pos;
            uint8_t last[WINDOW];
            unsigned left = st->end - pos < WINDOW ? (unsigned)(st->end - pos) : WINDOW;
            unsigned last_letter = 0;
            if (left < WINDOW) {
                memset(last, ' ', sizeof last);
                p = memcpy(last, p, left);
            }
            uint64_t starts = word_starts(self->plain->high, p, left, s, on, &last_letter);
            if (starts) {
                unsigned found = bits_count(starts);
                window_places_on(on, starts, found, pos, ends + n);
                n += found;
                st->pos = pos += bits_highest(starts);
                slow = FEW;
            } else if (last_letter) {
                pos += last_letter;
            } else {
                break;
            }
        }
        if (n && max - n < WINDOW) break;
        size_t most = max - n < slow ? max - n : slow;
        n += pretok_dfa_cut(self->plain, text, st, ends + n, most);
        if (n == max) break;
    }
    return n;
}

#else

#define cut(self, shape, on, text, st, ends, max) pretok_dfa_cut((self)->plain, text, st, ends, max)

#endif

#define CUT(on, ...) \
    (const pretok_scanner *self, const uint8_t *text, pretok_stage *st, size_t *ends, \
     size_t max) { \
        return cut(self, ((shape){__VA_ARGS__}), on, text, st, ends, max); \
    }

#if defined(PRETOK_WINDOWS) && defined(NEWER_X86)
#define PATTERN(name, ...) \
    static NEWEST size_t name##_newest CUT(MACHINE_NEWEST, __VA_ARGS__) static NEWER size_t \
        name##_newer CUT(MACHINE_NEWER, __VA_ARGS__) static size_t name##_any CUT(MACHINE_ANY, \
                                                                                  __VA_ARGS__) \
    size_t pretok_cut_##name(const pretok_scanner *self, const uint8_t *text, pretok_stage *st, \
                             size_t *ends, size_t max) { \
        return (newest_machine()  ? name##_newest \
                : newer_machine() ? name##_newer \
                                  : name##_any)(self, text, st, ends, max); \
    }
#else
#define PATTERN(name, ...) size_t pretok_cut_##name CUT(MACHINE_ANY, __VA_ARGS__)
#endif

#define LLAMA .any_prefix = true, .newline_words = true, .joined = true
#define OWN .contractions = OWN_WORD
#define EITHER .either_case = true
#define V3 LLAMA, .ascii_led = true, .no_controls = true, .han = true, .han_apart = true

PATTERN(gpt2, OWN)
PATTERN(starcoder, OWN, .digits = 1, .digits_apart = true)
PATTERN(llama3, LLAMA, OWN, EITHER, .digits = 3)
PATTERN(minicpm5, LLAMA, OWN, EITHER, .digits = 3, .digits_apart = true)
PATTERN(qwen2, LLAMA, OWN, EITHER, .digits = 1)
PATTERN(seed_coder, .any_prefix = true, .newline_words = true, OWN, EITHER, .digits = 1)
PATTERN(ufakzeka, LLAMA, .digits = 1)
PATTERN(kimi_k2, LLAMA, .han = true, .contractions = SUFFIX, EITHER, .digits = 3)
PATTERN(gpt4o, LLAMA, .slashes = true, .cased = true, .contractions = SUFFIX, EITHER, .digits = 3)
PATTERN(tekken, LLAMA, .slashes = true, .cased = true, .digits = 1)
PATTERN(youtu, LLAMA, .slashes = true, .contractions = SUFFIX, EITHER, .digits = 1)
PATTERN(tiny_aya, LLAMA, .slashes = true, .contractions = SUFFIX, EITHER, .digits = 3)
PATTERN(default, .no_controls = true, .no_backtick = true, .marks_apart = true, .digits = 3)
PATTERN(falcon, .no_controls = true, .marks_apart = true, .digits = 3, .led_digits = true)
PATTERN(deepseek_v3, V3, .digits = 3, .digits_apart = true)
PATTERN(afmoe, V3, .no_digits = true)
PATTERN(deepseek_coder, .gaps = CODER, .no_controls = true, .han = true)
PATTERN(deepseek_llm, .gaps = LLM, .no_controls = true, .han = true)
