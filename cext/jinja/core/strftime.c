/*
 * Formats times like glibc's strftime in the C locale, which both llama.cpp and Python call on
 * Linux. Python adds %f and %:z. Unknown conversions are
 * copied, as glibc does.
 */
#include <stdio.h>

#include "jinja/core/env.h"

static const char *const days[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                   "Thursday", "Friday", "Saturday"};
static const char *const months[] = {"January",   "February", "March",    "April",
                                     "May",       "June",     "July",     "August",
                                     "September", "October",  "November", "December"};

typedef struct moment {
    jinja_builder b;
    const jinja_time *t;
    int weekday, yearday; /* weekday 0: Sunday; yearday 0: January 1st */
    jinja_dialect dialect;
} moment;

typedef struct spec {        /* flags and width of one conversion */
    char pad;                /* '0', '_' (spaces), '-' (none); 0: the conversion's default */
    bool upper, lower, swap; /* upper: flag ^; lower: set for %P and by flag #; swap: flag # */
    int width;               /* -1: the conversion's default */
} spec;

static bool is_leap(int64_t year) {
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int64_t days_before_year(int64_t year) { /* from 0001-01-01; year >= 1 */
    year--;
    return 365 * year + year / 4 - year / 100 + year / 400;
}

static void find_day(moment *m) {
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    const jinja_time *t = m->t;
    m->yearday = before[t->month - 1] + t->day - 1 + (t->month > 2 && is_leap(t->year));
    m->weekday = (int)((days_before_year(t->year) + m->yearday + 1) % 7);
}

static int64_t seconds_since_1970(const moment *m) {
    const jinja_time *t = m->t;
    int64_t day = days_before_year(t->year) + m->yearday - days_before_year(1970);
    return day * 86400 + t->hour * 3600 + t->minute * 60 + t->second - t->utc_offset;
}

static void put_bytes(moment *m, const spec *s, const void *text, size_t n) {
    for (size_t i = n; (int64_t)i < s->width; i++) {
        ggtok_jinja_builder_add(&m->b, s->pad == '0' ? "0" : " ", 1, 0);
    }
    for (size_t i = 0; i < n; i++) {
        char c = ((const char *)text)[i];
        if (s->upper && c >= 'a' && c <= 'z')
            c -= 32;
        else if (s->lower && c >= 'A' && c <= 'Z')
            c += 32;
        ggtok_jinja_builder_add(&m->b, &c, 1, 0);
    }
}

static void put_text(moment *m, const spec *s, const char *text) {
    put_bytes(m, s, text, strlen(text));
}

static void put_number(moment *m, const spec *s, int i, int digits, char pad) {
    char text[32];
    if (s->pad) pad = s->pad;
    if (s->width > digits) digits = s->width;
    int n = snprintf(text, sizeof text, "%d", i);
    if (pad == '-') { /* without leading zeros, but in a field of this width */
        put_text(m, s, text);
        return;
    }
    for (int k = n; k < digits; k++) ggtok_jinja_builder_add(&m->b, pad == '_' ? " " : "0", 1, 0);
    ggtok_jinja_builder_add(&m->b, text, (size_t)n, 0);
}

static void put_seconds(moment *m, const spec *s) {
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)seconds_since_1970(m));
    put_text(m, s, text);
}

/* Returns the ISO 8601 week, and sets *year to the year that it belongs to. */
static int iso_week(const moment *m, int *year) {
    int day = (m->weekday + 6) % 7, week = (m->yearday - day + 10) / 7;
    *year = m->t->year;
    if (week < 1) {
        --*year;
        int last = m->yearday + (is_leap(*year) ? 366 : 365);
        return (last - day + 10) / 7;
    }
    int left = (is_leap(*year) ? 366 : 365) - m->yearday; /* days until the end of the year */
    if (week == 53 && left < 4 - day) return ++*year, 1;
    return week;
}

static void expand(moment *m, const uint8_t *format, size_t n);

static void expand_text(moment *m, const spec *s, const char *format) {
    jinja_builder outer = m->b;
    m->b = ggtok_jinja_builder_new(outer.arena, 64);
    expand(m, (const uint8_t *)format, strlen(format));
    ggtok_jinja_builder_add(&m->b, "", 1, 0);
    char *text = (char *)m->b.data;
    m->b = outer;
    put_text(m, s, text);
}

/* Writes the time zone's offset. The sign and the number are two fields, each of the given width. */
static void put_zone(moment *m, const spec *s, int colons) {
    int offset = m->t->utc_offset, size = offset < 0 ? -offset : offset;
    char text[24];
    if (!m->t->has_zone) return;
    if (!colons) {
        put_text(m, s, offset < 0 ? "-" : "+");
        put_number(m, s, size / 3600 * 100 + size / 60 % 60, 4, '0');
        return;
    }
    int n = snprintf(text, sizeof text, "%c%02d:%02d", offset < 0 ? '-' : '+', size / 3600,
                     size / 60 % 60);
    if (colons == 2) snprintf(text + n, sizeof text - (size_t)n, ":%02d", size % 60);
    put_text(m, s, text);
}

/* Writes one conversion. Returns false if the letter is unknown. */
static bool convert(moment *m, char letter, const spec *given, int colons) {
    const jinja_time *t = m->t;
    spec plain = *given;
    const spec *s = &plain;
    int year;
    int hour12 = t->hour % 12 ? t->hour % 12 : 12;
    /* Flag # makes names upper-case, and AM, PM and time zones lower-case, even with flag ^. */
    plain.lower = letter == 'P' || (s->swap && (letter == 'p' || letter == 'Z'));
    plain.upper = !plain.lower && (s->upper || (s->swap && strchr("aAbBh", letter)));
    switch (letter) {
    case 'a':
    case 'A': {
        char name[16];
        snprintf(name, sizeof name, letter == 'a' ? "%.3s" : "%s", days[m->weekday]);
        return put_text(m, s, name), true;
    }
    case 'b':
    case 'B':
    case 'h': {
        char name[16];
        snprintf(name, sizeof name, letter == 'B' ? "%s" : "%.3s", months[t->month - 1]);
        return put_text(m, s, name), true;
    }
    case 'c': return expand_text(m, s, "%a %b %e %H:%M:%S %Y"), true;
    case 'C': return put_number(m, s, t->year / 100, 2, '0'), true;
    case 'd': return put_number(m, s, t->day, 2, '0'), true;
    case 'D':
    case 'x': return expand_text(m, s, "%m/%d/%y"), true;
    case 'e': return put_number(m, s, t->day, 2, '_'), true;
    case 'F': return expand_text(m, s, "%Y-%m-%d"), true;
    case 'g': return iso_week(m, &year), put_number(m, s, year % 100, 2, '0'), true;
    case 'G': return iso_week(m, &year), put_number(m, s, year, 1, '0'), true;
    case 'H': return put_number(m, s, t->hour, 2, '0'), true;
    case 'I': return put_number(m, s, hour12, 2, '0'), true;
    case 'j': return put_number(m, s, m->yearday + 1, 3, '0'), true;
    case 'k': return put_number(m, s, t->hour, 2, '_'), true;
    case 'l': return put_number(m, s, hour12, 2, '_'), true;
    case 'm': return put_number(m, s, t->month, 2, '0'), true;
    case 'M': return put_number(m, s, t->minute, 2, '0'), true;
    case 'n': return put_text(m, s, "\n"), true;
    case 'p': return put_text(m, s, t->hour < 12 ? "AM" : "PM"), true;
    case 'P': return put_text(m, s, t->hour < 12 ? "am" : "pm"), true;
    case 'r': return expand_text(m, s, "%I:%M:%S %p"), true;
    case 'R': return expand_text(m, s, "%H:%M"), true;
    case 's': return put_seconds(m, s), true;
    case 'S': return put_number(m, s, t->second, 2, '0'), true;
    case 't': return put_text(m, s, "\t"), true;
    case 'T':
    case 'X': return expand_text(m, s, "%H:%M:%S"), true;
    case 'u': return put_number(m, s, m->weekday ? m->weekday : 7, 1, '0'), true;
    case 'U': return put_number(m, s, (m->yearday + 7 - m->weekday) / 7, 2, '0'), true;
    case 'V': return put_number(m, s, iso_week(m, &year), 2, '0'), true;
    case 'w': return put_number(m, s, m->weekday, 1, '0'), true;
    case 'W': return put_number(m, s, (m->yearday + 7 - (m->weekday + 6) % 7) / 7, 2, '0'), true;
    case 'y': return put_number(m, s, t->year % 100, 2, '0'), true;
    case 'Y': return put_number(m, s, t->year, 1, '0'), true;
    case 'z': return put_zone(m, s, colons), true;
    case 'Z': return put_text(m, s, t->has_zone ? t->zone : ""), true;
    case '%': return put_text(m, s, "%"), true;
    default: return false;
    }
}

/* The letters that may follow a modifier. */
static const char after_e[] = "cCnpPrRstTuxXyYzZ%", after_o[] = "bBCdegGhHIjklmMnpPrRsStTuUVwWyzZ%";

static void expand(moment *m, const uint8_t *f, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (f[i] != '%') {
            ggtok_jinja_builder_add(&m->b, f + i, 1, 0);
            continue;
        }
        spec s = {.width = -1};
        size_t begin = i++;
        for (; i < n && f[i] && strchr("_-0^#", f[i]); i++) {
            if (f[i] == '^')
                s.upper = true;
            else if (f[i] == '#')
                s.swap = true;
            else
                s.pad = (char)f[i];
        }
        for (; i < n && f[i] >= '0' && f[i] <= '9'; i++) {
            s.width = 10 * (s.width < 0 ? 0 : s.width) + f[i] - '0';
            if (s.width > 10000)
                ggtok_jinja_fail(m->b.arena, "'strftime_now' doesn't support widths above 10000");
        }
        char modifier = i < n && (f[i] == 'E' || f[i] == 'O') ? (char)f[i++] : 0;
        int colons = 0;
        if (m->dialect == JINJA_TRANSFORMERS) { /* Python's, not glibc's */
            for (; i < n && f[i] == ':' && colons < 3; i++) colons++;
        }
        char letter = i < n ? (char)f[i] : 0;
        if (letter == 'b' || letter == 'h') s.upper |= s.swap; /* even if the modifier is wrong */
        bool accepted =
            !modifier || (letter && strchr(modifier == 'E' ? after_e : after_o, letter));
        if (m->dialect == JINJA_TRANSFORMERS && letter == 'f' && i == begin + 1) {
            char micro[16];
            snprintf(micro, sizeof micro, "%06d", m->t->microsecond);
            ggtok_jinja_builder_add(&m->b, micro, 6, 0);
        } else if (!letter || !accepted || !convert(m, letter, &s, colons)) {
            put_bytes(m, &s, f + begin, (i < n ? i + 1 : n) - begin);
        }
    }
}

jinja_text *ggtok_jinja_strftime(jinja_arena *mem, const jinja_time *now, const jinja_text *format,
                                 jinja_dialect dialect) {
    bool llama = dialect == JINJA_LLAMA_CPP;
    moment m = {.b = ggtok_jinja_builder_new(mem, 64), .t = now, .dialect = dialect};
    m.b.merge = true;
    find_day(&m);
    size_t n = format->n;
    if (llama && n) { /* llama.cpp passes a C string, which ends at a NUL */
        const uint8_t *end = memchr(format->data, 0, n);
        if (end) n = (size_t)(end - format->data);
    }
    expand(&m, format->data, n);
    if (llama && (!m.b.n || m.b.n > 99)) return NULL;
    return ggtok_jinja_builder_end(&m.b);
}
