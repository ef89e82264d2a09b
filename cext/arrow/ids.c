#include "arrow/ids.h"

#include <stdatomic.h>

#include "base/mem.h"

/*
 *   ArrowArray large_list ──► list_buffers {validity, offsets} ──┐
 *        │                                                       ├──► arrow_ids
 *        └─ child int32 ────► item_buffers {NULL, ids} ──────────┘
 *
 * A consumer may move the child out of its parent and release it later, so each has its own memory
 * and its own reference.
 */
struct arrow_ids {
    _Atomic uint32_t references;
    size_t n, n_null;
    ggtok_batch *batch; /* owns the ids and offsets */
    uint8_t *validity;  /* one bit per text, 0: null. NULL: no text is null */
};

typedef struct list_owner {
    arrow_ids *ids;
    const void *buffers[2];
    struct ArrowArray child, *children[1];
} list_owner;

typedef struct item_owner {
    arrow_ids *ids;
    const void *buffers[2];
} item_owner;

typedef struct schema_owner {
    struct ArrowSchema child, *children[1];
} schema_owner;

static bool make_validity(arrow_ids *ids, const ggtok_bytes *texts, size_t n) {
    for (size_t i = 0; i < n; i++) ids->n_null += !texts[i].data;
    if (!ids->n_null) return true;
    if (!(ids->validity = ggtok_mem_zalloc(n / 8 + 1))) return false;
    for (size_t i = 0; i < n; i++) {
        if (texts[i].data) ids->validity[i / 8] |= (uint8_t)(1 << i % 8);
    }
    return true;
}

arrow_ids *ggtok_arrow_ids_new(ggtok_batch **batch, const ggtok_bytes *texts, size_t n) {
    arrow_ids *ids = ggtok_mem_zalloc(sizeof *ids);
    if (!ids) return NULL;
    atomic_init(&ids->references, 1);
    ids->n = n;
    if (!make_validity(ids, texts, n)) {
        ggtok_arrow_ids_drop(ids);
        return NULL;
    }
    ids->batch = *batch;
    *batch = NULL;
    return ids;
}

void ggtok_arrow_ids_drop(arrow_ids *ids) {
    if (!ids || atomic_fetch_sub(&ids->references, 1) != 1) return;
    ggtok_batch_free(ids->batch);
    ggtok_mem_free(ids->validity);
    ggtok_mem_free(ids);
}

static arrow_ids *one_more(arrow_ids *ids) {
    atomic_fetch_add(&ids->references, 1);
    return ids;
}

static void release_items(struct ArrowArray *array) {
    item_owner *owner = array->private_data;
    ggtok_arrow_ids_drop(owner->ids);
    ggtok_mem_free(owner);
    array->release = NULL;
}

static void release_list(struct ArrowArray *array) {
    list_owner *owner = array->private_data;
    if (owner->child.release) owner->child.release(&owner->child);
    ggtok_arrow_ids_drop(owner->ids);
    ggtok_mem_free(owner);
    array->release = NULL;
}

bool ggtok_arrow_ids_export(arrow_ids *ids, struct ArrowArray *out) {
    list_owner *list = ggtok_mem_zalloc(sizeof *list);
    item_owner *items = ggtok_mem_zalloc(sizeof *items);
    if (!list || !items) {
        ggtok_mem_free(list);
        ggtok_mem_free(items);
        return false;
    }
    items->ids = one_more(ids);
    items->buffers[1] = ggtok_batch_ids(ids->batch);
    list->ids = one_more(ids);
    list->buffers[0] = ids->validity;
    list->buffers[1] = ggtok_batch_offsets(ids->batch);
    list->children[0] = &list->child;
    list->child = (struct ArrowArray){
        .length = (int64_t)ggtok_batch_n_ids(ids->batch),
        .n_buffers = 2,
        .buffers = items->buffers,
        .release = release_items,
        .private_data = items,
    };
    *out = (struct ArrowArray){
        .length = (int64_t)ids->n,
        .null_count = (int64_t)ids->n_null,
        .n_buffers = 2,
        .buffers = list->buffers,
        .n_children = 1,
        .children = list->children,
        .release = release_list,
        .private_data = list,
    };
    return true;
}

/* ---- the schema ---- */

static void release_item_schema(struct ArrowSchema *schema) {
    schema->release = NULL;
}

static void release_list_schema(struct ArrowSchema *schema) {
    schema_owner *owner = schema->private_data;
    if (owner->child.release) owner->child.release(&owner->child);
    ggtok_mem_free(owner);
    schema->release = NULL;
}

bool ggtok_arrow_ids_schema(struct ArrowSchema *out) {
    schema_owner *owner = ggtok_mem_zalloc(sizeof *owner);
    if (!owner) return false;
    owner->children[0] = &owner->child;
    owner->child = (struct ArrowSchema){
        .format = "i",
        .name = "item",
        .flags = ARROW_FLAG_NULLABLE, /* as in other libraries' lists, although no id is null */
        .release = release_item_schema,
    };
    *out = (struct ArrowSchema){
        .format = "+L",
        .name = "",
        .flags = ARROW_FLAG_NULLABLE,
        .n_children = 1,
        .children = owner->children,
        .release = release_list_schema,
        .private_data = owner,
    };
    return true;
}

size_t ggtok_arrow_ids_rows(const arrow_ids *ids) {
    return ids->n;
}

size_t ggtok_arrow_ids_nulls(const arrow_ids *ids) {
    return ids->n_null;
}
