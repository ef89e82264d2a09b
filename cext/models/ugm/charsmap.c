#include "models/ugm/charsmap.h"

#include "vocab/keys.h"

ggtok_status ggtok_charsmap_load(charsmap *m, const gguf *g, ggtok_error *err) {
    const gguf_kv *kv = ggtok_gguf_find(g, KEY_CHARSMAP);
    if (!kv) return GGTOK_OK;
    size_t key_n = sizeof KEY_CHARSMAP - 1;
    if (kv->type != GGTOK_ARRAY || (kv->elem != GGTOK_U8 && kv->elem != GGTOK_I8)) {
        return ggtok_error_set_at(err, GGTOK_ERR_VOCAB, KEY_CHARSMAP, key_n, kv->value,
                                  "key '%s' must be an array of bytes", KEY_CHARSMAP);
    }
    const uint8_t *p = g->data + kv->value;
    size_t n = (size_t)kv->count;
    if (n < 4) {
        return ggtok_error_set_at(err, GGTOK_ERR_VOCAB, KEY_CHARSMAP, key_n, kv->value,
                                  "key '%s' has %zu bytes, too few for its header", KEY_CHARSMAP,
                                  n);
    }
    uint32_t size = p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    if ((uint64_t)size + 4 >= n) {
        return ggtok_error_set_at(err, GGTOK_ERR_VOCAB, KEY_CHARSMAP, key_n, kv->value,
                                  "key '%s' announces %u bytes of array, but has %zu in all",
                                  KEY_CHARSMAP, (unsigned)size, n);
    }
    m->n_units = size / 4;
    m->text_n = n - 4 - size;
    m->unit = ggtok_mem_alloc(m->n_units * sizeof *m->unit);
    m->text = ggtok_mem_alloc(m->text_n);
    if (!m->unit || !m->text) return ggtok_error_memory(err);
    p += 4;
    for (size_t i = 0; i < m->n_units; i++) {
        const uint8_t *u = p + 4 * i;
        m->unit[i] = u[0] | (uint32_t)u[1] << 8 | (uint32_t)u[2] << 16 | (uint32_t)u[3] << 24;
    }
    memcpy(m->text, p + size, m->text_n);
    return GGTOK_OK;
}

void ggtok_charsmap_free(charsmap *m) {
    ggtok_mem_free(m->unit);
    ggtok_mem_free(m->text);
    *m = (charsmap){0};
}

static inline uint32_t base_of(uint32_t unit) {
    return (unit >> 10) << ((unit & 1u << 9) >> 6);
}

size_t ggtok_charsmap_match(const charsmap *m, const uint8_t *p, size_t n, const uint8_t **with,
                            size_t *with_n, const char **fault) {
    if (!m->n_units) return 0;
    size_t matched = 0, at = 0;
    uint32_t i = base_of(m->unit[0]);
    for (size_t k = 0; k < n && p[k]; k++) {
        i ^= p[k];
        if (i >= m->n_units) goto outside;
        uint32_t unit = m->unit[i];
        if ((unit & (1u << 31 | 0xFF)) != p[k]) break;
        i ^= base_of(unit);
        if (unit >> 8 & 1) {
            if (i >= m->n_units) goto outside;
            matched = k + 1;
            at = m->unit[i] & ~(1u << 31);
        }
    }
    if (!matched) return 0;
    if (at >= m->text_n) {
        *fault = "a replacement lies outside the text";
        return 0;
    }
    size_t left = m->text_n - at, most = matched * CHARSMAP_MOST + 1;
    const uint8_t *end = memchr(m->text + at, 0, left < most ? left : most);
    if (!end) {
        *fault = left < most ? "a replacement has no end"
                             : "a replacement is more than 32 times as long as what it replaces";
        return 0;
    }
    *with = m->text + at;
    *with_n = (size_t)(end - *with);
    return matched;
outside:
    *fault = "a link leads out of the array";
    return 0;
}

bool ggtok_charsmap_keeps_ascii(const charsmap *m, uint8_t c) {
    if (!m->n_units || !c) return true;
    uint32_t i = base_of(m->unit[0]) ^ c;
    if (i >= m->n_units) return false;
    uint32_t unit = m->unit[i];
    if ((unit & (1u << 31 | 0xFF)) != c) return true;
    if (unit >> 8 & 1) return false;
    i ^= base_of(unit);
    for (uint32_t next = 1; next < 0x80; next++) {
        uint32_t k = i ^ next;
        if (k >= m->n_units || (m->unit[k] & (1u << 31 | 0xFF)) == next) return false;
    }
    return true;
}

/* Whether the unit, reached by its label, has a child for byte c, or one outside the array. */
static bool has_child(const charsmap *m, size_t unit, uint8_t c) {
    size_t child = unit ^ base_of(m->unit[unit]) ^ c;
    return child >= m->n_units || (m->unit[child] & (1u << 31 | 0xFF)) == c;
}

/* Whether no sequence ends at the unit, and none continues with a byte other than the n bytes
 * from `first` on. */
static bool only_goes_on(const charsmap *m, size_t unit, uint8_t first, uint8_t n) {
    if (unit >= m->n_units || m->unit[unit] >> 8 & 1) return false;
    for (unsigned next = 1; next < 256; next++) {
        if ((uint8_t)(next - first) >= n && has_child(m, unit, (uint8_t)next)) return false;
    }
    return true;
}

/* Whether all sequences that continue with this byte after the unit contain a mark for which
 * charsmap_joins is true. */
static bool only_joined(const charsmap *m, size_t unit, uint8_t byte) {
    if (byte != 0xD9 && byte != 0xE3 && byte != 0xEF) return false;
    unit ^= base_of(m->unit[unit]) ^ byte;
    if (byte == 0xD9) return only_goes_on(m, unit, 0x93, 3);
    const uint8_t second = byte == 0xE3 ? 0x82 : 0xBE, last = byte == 0xE3 ? 0x99 : 0x9E;
    if (!only_goes_on(m, unit, second, 1)) return false;
    if (!has_child(m, unit, second)) return true;
    unit ^= base_of(m->unit[unit]) ^ second;
    return only_goes_on(m, unit, last, 2);
}

charsmap_fate ggtok_charsmap_fate(const charsmap *m, const uint8_t *p, size_t len) {
    if (!m->n_units) return CHARSMAP_KEPT;
    size_t unit = 0;
    for (size_t k = 0; k < len; k++) {
        if (k && m->unit[unit] >> 8 & 1) return CHARSMAP_UNSURE;
        unit ^= base_of(m->unit[unit]) ^ p[k];
        if (unit >= m->n_units) return CHARSMAP_UNSURE;
        if ((m->unit[unit] & (1u << 31 | 0xFF)) != p[k]) return CHARSMAP_KEPT;
    }
    charsmap_fate fate = m->unit[unit] >> 8 & 1 ? CHARSMAP_REPLACED : CHARSMAP_KEPT;
    for (unsigned next = 1; next < 256; next++) {
        if ((next & 0xFE) == 0xCC || !has_child(m, unit, (uint8_t)next)) continue;
        if (!only_joined(m, unit, (uint8_t)next)) return CHARSMAP_UNSURE;
        if (fate == CHARSMAP_KEPT) fate = CHARSMAP_KEPT_UNJOINED;
    }
    return fate;
}

bool ggtok_charsmap_is_space(const charsmap *m, uint8_t c) {
    const uint8_t *with;
    const char *fault = NULL;
    size_t with_n;
    if (!m->n_units) return c == ' ';
    size_t own = base_of(m->unit[0]) ^ c;
    if (own >= m->n_units) return false;
    if ((m->unit[own] & (1u << 31 | 0xFF)) == c) {
        if (ggtok_charsmap_match(m, &c, 1, &with, &with_n, &fault) != 1) return false;
        if (with_n != 1 || *with != ' ') return false;
        for (unsigned next = 1; next < 256; next++) {
            if (has_child(m, own, (uint8_t)next)) return false;
        }
    } else if (c != ' ') {
        return false;
    }
    /* Check all units that could be reached, whether or not a path leads to them. */
    for (size_t i = 0; i < m->n_units; i++) {
        uint32_t label = m->unit[i] & (1u << 31 | 0xFF);
        if (label && !(label >> 31) && has_child(m, i, c)) return false;
    }
    return true;
}
