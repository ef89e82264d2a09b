/*
 * Handles chat requests: reads, renders, finishes and encodes conversations in one call, without
 * creating Python objects in between. ggtok/chat/request.py makes the arguments.
 *
 *     with the GIL       read each conversation's messages into its own env
 *     without the GIL    render, finish and encode each conversation, and free its env
 *     with the GIL       create the results: lists of ids, numbers or texts
 *
 * The ids of several conversations are copied to one buffer. For a single conversation, the ids
 * stay in the context, or the text in the env, until the result has been created.
 *
 * This code reads only ordinary messages: exact dicts of exact str, as nearly all are. The result
 * lists the indices of all other messages. Python code (ggtok/chat/llama.py, transformers.py)
 * converts these and calls ggtok_py_chat again with GGTOK_CHAT_PREPARED. Either way, the template
 * gets the same messages.
 */
#include "python/chat.h"

#include "base/mem.h"
#include "python/list.h"
#include "python/values.h"
#include "unicode/utf8_valid.h"

/* Indices of the arguments. */
enum { TEMPLATE, VARIABLES, BITS, WANT, FLAGS, FINISH, ROLES, CONVERSATIONS, TIME };

typedef struct request {
    PyObject *self;
    const jinja_template *t;
    jinja_dialect dialect;
    PyObject *variables; /* a dict of plain data */
    unsigned long bits, want, flags;
    jinja_finish_options finish;
    PyObject *roles; /* the roles whose messages count as text of the template */
    jinja_time now;
} request;

typedef enum outcome { READ, NEEDS_PYTHON, FAILED, FAILED_TO_ENCODE, RAISED, DONE } outcome;

typedef struct job {
    jinja_env *env, *other; /* other: an env with the opposite add_generation_prompt, or NULL */
    outcome outcome;
    size_t begin, n;   /* range in the shared buffer, in bytes; n: number of ids if only counted */
    const void *alone; /* the result of a single job, which isn't copied */
    jinja_result prompt, other_prompt;
    Py_ssize_t *for_python; /* indices of the messages that need Python */
    size_t n_for_python, cap_for_python;
    jinja_error error;
    ggtok_error encode_error;
} job;

typedef struct reading {
    const request *p;
    PyObject *messages;
    job *j;
    bool other;
} reading;

/* ---- messages ---- */

/* A cached role. Most messages have the same role as one of the two preceding messages. */
typedef struct known_role {
    PyObject *object; /* borrowed from a message */
    const char *data; /* UTF-8 of the role, owned by the object; NULL if it has none */
    Py_ssize_t n;
    bool system, developer, assistant;
    const jinja_text *text; /* the role as a template's text; NULL: not read yet */
} known_role;

enum { ROLES_KEPT = 2 };
typedef struct words { /* values for reading messages, created once per conversation */
    jinja_value role, content, reasoning, name, call, type, text;
    known_role roles[ROLES_KEPT];
    unsigned oldest; /* number of replacements; roles[oldest % ROLES_KEPT] is replaced next */
} words;

static jinja_value word(reader *r, const char *s, jinja_label label) {
    return jinja_of_text(ggtok_jinja_text_of(r->mem, s, strlen(s), label));
}

static bool is_key(const char *key, Py_ssize_t n, const char *name) {
    return (size_t)n == strlen(name) && !memcmp(key, name, (size_t)n);
}

static jinja_value read_role(reader *r, const request *p, PyObject *role) {
    jinja_value v = ggtok_py_read_object(r, role);
    if (PySet_Contains(p->roles, role) == 1) v.as.text->label = JINJA_FROM_TEMPLATE;
    return v;
}

static known_role *role_of(words *w, PyObject *object) {
    known_role *roles = w->roles;
    for (unsigned i = 0; i < ROLES_KEPT; i++) {
        if (roles[i].object == object) return &roles[i];
    }
    Py_ssize_t n = 0;
    const char *data = PyUnicode_AsUTF8AndSize(object, &n);
    if (!data) PyErr_Clear();
    for (unsigned i = 0; data && i < ROLES_KEPT; i++) {
        if (roles[i].n == n && roles[i].data && !memcmp(roles[i].data, data, (size_t)n))
            return &roles[i];
    }
    known_role *role = &roles[w->oldest++ % ROLES_KEPT];
    *role = (known_role){.object = object, .data = data, .n = n};
    role->system = data && is_key(data, n, "system");
    role->developer = data && is_key(data, n, "developer");
    role->assistant = data && is_key(data, n, "assistant");
    return role;
}

/* Returns a new text for each message, so that `is sameas` distinguishes the roles of two messages;
 * the bytes are shared. */
static jinja_value value_of_role(reader *r, const request *p, known_role *role) {
    if (!role->text) {
        jinja_value v = read_role(r, p, role->object);
        role->text = v.as.text;
        return v;
    }
    jinja_text *text = jinja_alloc(r->mem, sizeof *text);
    *text = *role->text;
    ggtok_jinja_env_grow(r->env, 8 + text->n); /* charge as if the role were read again */
    return jinja_of_text(text);
}

/* Reads a message in the form that llama-server passes to a template. Returns false if it needs
 * Python. */
static bool read_llama(reader *r, const request *p, words *w, PyObject *message, bool is_first,
                       bool is_last, jinja_value *out) {
    PyObject *key, *value, *role = NULL, *content = NULL, *reasoning = NULL, *name = NULL,
                           *call = NULL;
    Py_ssize_t at = 0, n;
    while (PyDict_Next(message, &at, &key, &value)) {
        if (!PyUnicode_CheckExact(key)) return false;
        const char *data = PyUnicode_AsUTF8AndSize(key, &n);
        if (!data) return PyErr_Clear(), false;
        PyObject **to = NULL;
        switch (n) {
        case 4:
            to = !memcmp(data, "role", 4) ? &role : !memcmp(data, "name", 4) ? &name : NULL;
            break;
        case 7: to = !memcmp(data, "content", 7) ? &content : NULL; break;
        case 10:
            if (!memcmp(data, "tool_calls", 10) && value != Py_None) return false;
            break;
        case 12: to = !memcmp(data, "tool_call_id", 12) ? &call : NULL; break;
        case 17: to = !memcmp(data, "reasoning_content", 17) ? &reasoning : NULL; break;
        default: break;
        }
        if (!to) continue;
        if (!PyUnicode_CheckExact(value) && (to != &content || value != Py_None)) return false;
        *to = value;
    }
    if (!role || !content) return false;
    known_role *known = role_of(w, role);
    if (is_last && p->bits & GGTOK_CHAT_PREFILL && known->assistant) return false;
    if (is_first && p->bits & GGTOK_CHAT_NO_SYSTEM && (known->system || known->developer))
        return false;
    if (reasoning && p->bits & GGTOK_CHAT_NO_REASONING) return false;
    jinja_dict *dict = ggtok_jinja_dict_new(r->mem, 4);
    jinja_value said = content == Py_None ? word(r, "", 0) : ggtok_py_read_object(r, content);
    if (p->bits & GGTOK_CHAT_TYPED) {
        jinja_list *parts = ggtok_jinja_list_new(r->mem, 1);
        jinja_dict *part = ggtok_jinja_dict_new(r->mem, 2);
        ggtok_jinja_dict_add(r->mem, part, w->type, word(r, "text", JINJA_FROM_TEMPLATE));
        ggtok_jinja_dict_add(r->mem, part, w->text, said);
        ggtok_jinja_list_push(r->mem, parts, jinja_of_dict(part));
        said = jinja_of_list(parts);
    }
    bool renamed = known->developer && p->bits & GGTOK_CHAT_NO_DEVELOPER;
    ggtok_jinja_dict_add(r->mem, dict, w->role,
                         renamed ? word(r, "system", JINJA_FROM_TEMPLATE)
                                 : value_of_role(r, p, known));
    ggtok_jinja_dict_add(r->mem, dict, w->content, said);
    const struct {
        PyObject *object;
        jinja_value key;
    } more[] = {{reasoning, w->reasoning}, {name, w->name}, {call, w->call}};
    for (size_t i = 0; i < 3; i++) {
        if (!more[i].object || !PyUnicode_GetLength(more[i].object)) continue;
        ggtok_jinja_dict_add(r->mem, dict, more[i].key, ggtok_py_read_object(r, more[i].object));
    }
    *out = jinja_of_dict(dict);
    return true;
}

/* Reads a message in the form that transformers passes to a template, without fields that are None.
 * Returns false if it needs Python. */
static bool read_transformers(reader *r, const request *p, const words *w, PyObject *message,
                              jinja_value *out) {
    PyObject *key, *value;
    Py_ssize_t at = 0, n;
    jinja_dict *dict = ggtok_jinja_dict_new(r->mem, (size_t)PyDict_Size(message));
    while (PyDict_Next(message, &at, &key, &value)) {
        if (!PyUnicode_CheckExact(key)) return false;
        if (value == Py_None) continue;
        const char *data = PyUnicode_AsUTF8AndSize(key, &n);
        if (!data) return PyErr_Clear(), false;
        if (is_key(data, n, "reasoning_content") || is_key(data, n, "reasoning") ||
            is_key(data, n, "thinking")) {
            return false;
        }
        if (is_key(data, n, "role") && PyUnicode_CheckExact(value)) {
            ggtok_jinja_dict_set(r->mem, dict, w->role, read_role(r, p, value));
            continue;
        }
        r->level = 1; /* level 0 is the message */
        jinja_value name = ggtok_py_read_object(r, key);
        ggtok_jinja_dict_set(r->mem, dict, name, ggtok_py_read_object(r, value));
    }
    *out = jinja_of_dict(dict);
    return true;
}

static void note_needs_python(reader *r, job *j, Py_ssize_t i) {
    if (j->n_for_python == j->cap_for_python) {
        size_t cap = 2 * j->cap_for_python + 8;
        Py_ssize_t *more = ggtok_mem_realloc(j->for_python, mem_mul(cap, sizeof *more));
        if (!more) {
            PyErr_NoMemory();
            r->raised = true;
            ggtok_jinja_fail(r->mem, "out of memory");
        }
        j->for_python = more;
        j->cap_for_python = cap;
    }
    j->for_python[j->n_for_python++] = i;
}

static void read_messages(jinja_arena *mem, void *user) {
    reader *r = user;
    const reading *job_read = r->more;
    const request *p = job_read->p;
    PyObject *messages = job_read->messages;
    ggtok_py_read_variables(mem, r);
    r->strict = true;
    words w = {.role = word(r, "role", 0),
               .content = word(r, "content", 0),
               .reasoning = word(r, "reasoning_content", 0),
               .name = word(r, "name", 0),
               .call = word(r, "tool_call_id", 0),
               .type = word(r, "type", 0),
               .text = word(r, "text", 0)};
    Py_ssize_t n = PyList_Size(messages);
    jinja_list *list = ggtok_jinja_list_new(mem, (size_t)n);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *message = PyList_GetItem(messages, i);
        jinja_value v;
        bool fine = false;
        jinja_charge(mem, 1);
        ggtok_jinja_env_grow(r->env, 8);
        if (p->bits & GGTOK_CHAT_PREPARED && PyTuple_CheckExact(message)) {
            r->strict = false;
            v = ggtok_py_read_object(r, PyTuple_GetItem(message, 0));
            fine = r->strict = true;
        } else if (PyDict_CheckExact(message)) {
            r->level = 0;
            fine = p->dialect == JINJA_TRANSFORMERS
                       ? read_transformers(r, p, &w, message, &v)
                       : read_llama(r, p, &w, message, i == 0, i == n - 1, &v);
        }
        if (fine)
            ggtok_jinja_list_push(mem, list, v);
        else
            note_needs_python(r, job_read->j, i);
    }
    if (!(p->bits & GGTOK_CHAT_OWN_MESSAGES))
        ggtok_jinja_env_set(r->env, "messages", 8, jinja_of_list(list));
    bool generation = (p->bits & GGTOK_CHAT_GENERATION) != 0;
    if (p->dialect == JINJA_LLAMA_CPP && generation != job_read->other) {
        ggtok_jinja_env_set(r->env, "add_generation_prompt", 21, jinja_bool(true));
    }
}

static outcome read_env(const request *p, PyObject *messages, job *j, bool other) {
    const jinja_options options = {.now = p->now};
    jinja_env **env = other ? &j->other : &j->env;
    if (ggtok_jinja_env_new(&options, env, &j->error)) return FAILED;
    const reading more = {p, messages, j, other};
    reader r = ggtok_py_reader(*env, p->dialect);
    r.variables = p->variables;
    r.more = &more;
    ggtok_status status = ggtok_py_read(&r, read_messages, &j->error);
    if (r.raised) return RAISED;
    if (r.needs_python || j->n_for_python) return NEEDS_PYTHON;
    return status ? FAILED : READ;
}

/* Whether two prompts are rendered, with and without a generation prompt. */
static bool renders_both(const request *p) {
    return p->bits & GGTOK_CHAT_BOTH || p->want == GGTOK_CHAT_PROMPTS;
}

static void read_job(const request *p, PyObject *messages, job *j) {
    j->outcome = NEEDS_PYTHON;
    if (!PyList_CheckExact(messages)) return;
    if (!(p->bits & GGTOK_CHAT_PREPARED)) {
        bool empty = !PyList_Size(messages) && p->dialect == JINJA_TRANSFORMERS;
        if (empty || p->bits & GGTOK_CHAT_PREPARE_ALL) return;
    }
    j->outcome = read_env(p, messages, j, false);
    if (j->outcome == READ && renders_both(p)) j->outcome = read_env(p, messages, j, true);
}

static void free_job(job *j) {
    ggtok_jinja_env_free(j->env);
    ggtok_jinja_env_free(j->other);
    j->env = j->other = NULL;
}

/* ---- prompts ---- */

/* Whether Python's UTF-8 decoder accepts the text. Text that is well-formed in the wide sense may
 * contain surrogates, which begin with 0xED and a byte from 0xA0 on. */
static bool is_utf8(const char *text, size_t n) {
    enum { FIRST = 0xED, SURROGATES = 0xA0 };
    const uint8_t *p = (const uint8_t *)text, *end = p + n;
    if (ggtok_utf8_valid_prefix(p, n) < n) return false;
    while (p < end && (p = memchr(p, FIRST, (size_t)(end - p)))) {
        if (p[1] >= SURROGATES) return false;
        p += 3;
    }
    return true;
}

static ggtok_status render_env(const request *p, jinja_env *env, jinja_result *out,
                               jinja_error *err) {
    ggtok_status status = ggtok_jinja_render(env, p->t, out, err);
    if (!status) status = ggtok_jinja_finish(env, &p->finish, out, err);
    if (status || is_utf8(out->text, out->n)) return status;
    *err = (jinja_error){GGTOK_ERR_TEMPLATE, .message = "the template splits a character"};
    return err->status;
}

/* Renders the prompts of a job whose messages have been read. */
static bool render(const request *p, job *j) {
    ggtok_status status = render_env(p, j->env, &j->prompt, &j->error);
    if (!status && j->other) status = render_env(p, j->other, &j->other_prompt, &j->error);
    j->outcome = status ? FAILED : DONE;
    return !status;
}

static bool keep(bytebuf *all, job *j, const void *data, size_t n) {
    j->n = n;
    if (!all) {
        j->alone = data;
        return true;
    }
    j->begin = all->n;
    return bytebuf_append(all, data, n);
}

/* Runs a job, without the GIL. `all` is the buffer that jobs share; NULL if this is the only
 * job. */
static void run_job(const request *p, job *j, ggtok_context *ctx, bytebuf *all) {
    const jinja_result *prompt = &j->prompt;
    if (j->outcome != READ || !render(p, j) || p->want >= GGTOK_CHAT_PROMPT) return;
    bool kept;
    if (p->want == GGTOK_CHAT_TEXT) {
        kept = keep(all, j, prompt->text, prompt->n);
    } else {
        const ggtok_range whole = {0, prompt->n};
        bool trusted = (p->bits & GGTOK_CHAT_TRUSTED) != 0;
        ggtok_ids ids;
        ggtok_parts parts;
        if (ggtok_encode_trusted(ctx, prompt->text, prompt->n, (unsigned)p->flags,
                                 trusted ? &whole : prompt->from_template,
                                 trusted ? prompt->n != 0 : prompt->n_from_template, &ids, &parts,
                                 &j->encode_error)) {
            j->outcome = FAILED_TO_ENCODE;
            return;
        }
        if (p->want == GGTOK_CHAT_COUNT) {
            j->n = ids.n;
            return;
        }
        kept = keep(all, j, ids.data, ids.n * sizeof *ids.data);
    }
    if (kept) return;
    j->outcome = FAILED_TO_ENCODE;
    j->encode_error = (ggtok_error){.status = GGTOK_ERR_MEMORY, .message = "out of memory"};
}

/* ---- the call ---- */

static bool read_request(PyObject *const *args, request *p) {
    p->t = PyCapsule_GetPointer(args[TEMPLATE], GGTOK_PY_TEMPLATE);
    if (!p->t) return false;
    p->dialect = ggtok_jinja_template_dialect(p->t);
    p->variables = args[VARIABLES];
    p->bits = PyLong_AsUnsignedLong(args[BITS]);
    p->want = PyLong_AsUnsignedLong(args[WANT]);
    p->flags = PyLong_AsUnsignedLong(args[FLAGS]);
    p->roles = args[ROLES];
    p->finish.only_from_template = p->dialect == JINJA_TRANSFORMERS;
    const char **const texts[] = {&p->finish.bos, &p->finish.eos, &p->finish.turn,
                                  &p->finish.answer};
    for (Py_ssize_t i = 0; i < 4; i++) {
        *texts[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(args[FINISH], i), NULL);
        if (!*texts[i]) return false;
    }
    if (args[TIME] != Py_None && !ggtok_py_time(args[TIME], &p->now)) return false;
    return !PyErr_Occurred();
}

/* Returns the indices of the messages that need Python, as a tuple; () means the whole
 * conversation. */
static PyObject *indices_for_python(const job *j) {
    PyObject *list = ggtok_py_list_begin((Py_ssize_t)j->n_for_python);
    for (size_t i = 0; list && i < j->n_for_python; i++) {
        PyObject *index = PyLong_FromSsize_t(j->for_python[i]);
        if (!index)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, (Py_ssize_t)i, index);
    }
    return ggtok_py_list_end_as_tuple(list);
}

static bool append_prompt(PyObject *list, const jinja_result *prompt) {
    PyObject *parts[] = {PyUnicode_DecodeUTF8(prompt->text, (Py_ssize_t)prompt->n, NULL),
                         ggtok_py_ranges(prompt->from_template, prompt->n_from_template),
                         ggtok_py_ranges(prompt->generated, prompt->n_generated)};
    bool ok = true;
    for (size_t i = 0; i < 3; i++) {
        ok = ok && parts[i] && !PyList_Append(list, parts[i]);
        Py_XDECREF(parts[i]);
    }
    return ok;
}

static PyObject *prompts_of(const request *p, const job *j) {
    PyObject *list = PyList_New(0);
    if (!list) return NULL;
    bool ok = append_prompt(list, &j->prompt);
    if (p->want == GGTOK_CHAT_PROMPTS) ok = ok && append_prompt(list, &j->other_prompt);
    if (!ok) Py_CLEAR(list);
    return list;
}

/* Returns the result of a job: its value, an exception that isn't raised, or the indices that need
 * Python. */
static PyObject *result_of(const request *p, const job *j, const bytebuf *all) {
    switch (j->outcome) {
    case DONE:
        if (p->want == GGTOK_CHAT_COUNT) return PyLong_FromSize_t(j->n);
        if (p->want >= GGTOK_CHAT_PROMPT) return prompts_of(p, j);
        const char *data = j->alone ? j->alone : j->n ? (const char *)all->data + j->begin : "";
        if (p->want == GGTOK_CHAT_TEXT) return PyUnicode_DecodeUTF8(data, (Py_ssize_t)j->n, NULL);
        PyObject *list =
            ggtok_py_list(p->self, (const int32_t *)(const void *)data, j->n / sizeof(int32_t));
        return p->bits & GGTOK_CHAT_UNTRACKED ? list : ggtok_py_list_end(list);
    case FAILED: return ggtok_py_template_error(&j->error);
    case FAILED_TO_ENCODE: return ggtok_py_error(p->self, &j->encode_error);
    default: return indices_for_python(j);
    }
}

/* Runs the jobs without the GIL. `ctx` is NULL if nothing is encoded. */
static void run_jobs(const request *p, job *jobs, size_t n, ggtok_context *ctx, bytebuf *all) {
    PyThreadState *state = PyEval_SaveThread();
    bool copied = n > 1 && p->want < GGTOK_CHAT_PROMPT;
    for (size_t i = 0; i < n; i++) {
        run_job(p, &jobs[i], ctx, n == 1 ? NULL : all);
        if (copied) free_job(&jobs[i]);
    }
    PyEval_RestoreThread(state);
}

/* (template, variables, bits, what to return, flags of ggtok_encode, (bos, eos, turn, answer), set
 * of trusted roles, list of conversations, time or None if the template doesn't use it) -> list of
 * results */
PyObject *ggtok_py_chat(PyObject *self, PyObject *const *args, Py_ssize_t n_args) {
    (void)n_args;
    request p = {.self = self};
    PyObject *conversations = args[CONVERSATIONS], *results = NULL;
    if (!read_request(args, &p)) return NULL;
    size_t n = (size_t)PyList_Size(conversations);
    job *jobs = ggtok_mem_zalloc(mem_mul(n, sizeof *jobs));
    bytebuf all = {0};
    ggtok_error err;
    ggtok_context *ctx = NULL;
    if (!jobs) return PyErr_NoMemory();
    for (size_t i = 0; i < n; i++) {
        read_job(&p, PyList_GetItem(conversations, (Py_ssize_t)i), &jobs[i]);
        if (jobs[i].outcome == RAISED) goto done;
    }
    if (p.want <= GGTOK_CHAT_COUNT && !(ctx = ggtok_pool_acquire(ggtok_py_pool(self), &err))) {
        PyObject *error = ggtok_py_error(self, &err);
        if (error) PyErr_SetObject((PyObject *)Py_TYPE(error), error);
        Py_XDECREF(error);
        goto done;
    }
    run_jobs(&p, jobs, n, ctx, &all);
    results = ggtok_py_list_begin((Py_ssize_t)n);
    for (size_t i = 0; results && i < n; i++) {
        PyObject *result = result_of(&p, &jobs[i], &all);
        if (result)
            PyList_SetItem(results, (Py_ssize_t)i, result);
        else
            Py_CLEAR(results);
    }
    ggtok_py_list_end(results);
done:
    if (ctx) ggtok_pool_release(ggtok_py_pool(self), ctx);
    for (size_t i = 0; i < n; i++) {
        free_job(&jobs[i]);
        ggtok_mem_free(jobs[i].for_python);
    }
    ggtok_mem_free(jobs);
    ggtok_mem_free(all.data);
    return results;
}
