/*
 * Chat requests from Python: reads them, and calls cext/chat/, which has the rules.
 *
 *     with the GIL       read each request into its own env
 *     without the GIL    render, finish and encode each request, and free its env
 *     with the GIL       create the results: lists of ids, numbers, texts or prompts
 *
 * The ids of several requests are copied to one buffer. For a single request, the ids stay in the
 * context, or the text in the env, until the result has been created.
 */
#include "python/chat.h"

#include "python/bind.h"
#include "python/internal.h"
#include "python/list.h"
#include "python/state.h"
#include "python/values.h"

#define CHAT_CAPSULE "ggtok.chat"

static PyObject *convert_function;

/* ---- compiling ---- */

static void free_chat(PyObject *capsule) {
    ggtok_chat_free(PyCapsule_GetPointer(capsule, CHAT_CAPSULE));
}

static bool add(PyObject *dict, const char *name, PyObject *value) {
    bool ok = value && !PyDict_SetItemString(dict, name, value);
    Py_XDECREF(value);
    return ok;
}

static PyObject *variables_of(const ggtok_chat *chat, bool tools) {
    PyObject *names = PyList_New(0);
    for (size_t i = 0; names; i++) {
        ggtok_bytes name = ggtok_chat_variable(chat, tools, i);
        if (!name.n) break;
        PyObject *text = PyUnicode_DecodeUTF8(name.data, (Py_ssize_t)name.n, "replace");
        if (!text || PyList_Append(names, text)) Py_CLEAR(names);
        Py_XDECREF(text);
    }
    return names;
}

/* Returns what Python shows of a policy: its capabilities and its source. */
static PyObject *facts_of(const chat_policy *p) {
    PyObject *facts = PyDict_New();
    const chat_caps *c = &p->caps;
    const struct {
        const char *name;
        bool value;
    } flags[] = {
        {"string_content", c->string_content},
        {"typed_content", c->typed_content},
        {"tools", c->tools},
        {"tool_calls", c->tool_calls},
        {"parallel_tool_calls", c->parallel_tool_calls},
        {"system_role", c->system_role},
        {"preserve_reasoning", c->preserve_reasoning},
        {"reasoning_effort", c->reasoning_effort},
        {"object_arguments", c->object_arguments},
    };
    bool ok = facts != NULL;
    PyObject *caps = ok ? PyDict_New() : NULL;
    for (size_t i = 0; caps && i < sizeof flags / sizeof *flags; i++) {
        if (!add(caps, flags[i].name, PyBool_FromLong(flags[i].value))) Py_CLEAR(caps);
    }
    ok = ok && add(facts, "caps", caps);
    ok = ok &&
         add(facts, "family",
             p->family ? PyUnicode_FromString(p->family->name) : (Py_INCREF(Py_None), Py_None));
    ok = ok && add(facts, "thinks", PyBool_FromLong(p->thinks));
    ok = ok && add(facts, "reasoning_tags",
                   Py_BuildValue("(ss)", p->tags.start ? p->tags.start : "",
                                 p->tags.end ? p->tags.end : ""));
    ok = ok && add(facts, "source",
                   PyUnicode_DecodeUTF8(p->source, (Py_ssize_t)p->n_source, "surrogateescape"));
    if (!ok) Py_CLEAR(facts);
    return facts;
}

static bool read_time(PyObject *time, jinja_time *out) {
    if (time != Py_None) return ggtok_python_time(time, out);
    *out = ggtok_chat_present_time();
    return true;
}

/* (0: llama-server, 1: transformers; the template or None; the time or None: now) -> (chat, bytes of memory,
 * whether prompts depend on the time, two lists of variables, facts about two policies or None:
 * without and with tools) */
PyObject *ggtok_python_chat_compile(PyObject *self, PyObject *const *args, Py_ssize_t n_args) {
    ggtok_chat_options options = {.like = (ggtok_chat_like)PyLong_AsLong(args[0])};
    jinja_time now = {0};
    ggtok_chat *chat;
    jinja_error err;
    (void)n_args;
    if (args[1] != Py_None) {
        Py_ssize_t n;
        options.template_source = PyUnicode_AsUTF8AndSize(args[1], &n);
        if (!options.template_source) return NULL;
        options.n_template = (size_t)n;
    }
    if (!read_time(args[2], &now)) return NULL;
    ggtok_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = ggtok_chat_compile(ggtok_python_tokenizer(self), &options, &now, &chat, &err);
    Py_END_ALLOW_THREADS;
    if (status) return ggtok_python_template_error(&err);
    PyObject *capsule = PyCapsule_New(chat, CHAT_CAPSULE, free_chat);
    if (!capsule) {
        ggtok_chat_free(chat);
        return NULL;
    }
    PyObject *parts[4] = {variables_of(chat, false), variables_of(chat, true), NULL, NULL};
    for (int i = 0; i < 2; i++) {
        const chat_policy *p = ggtok_chat_policy_for(chat, i);
        parts[2 + i] = p ? facts_of(p) : (Py_INCREF(Py_None), Py_None);
    }
    PyObject *result = NULL;
    if (parts[0] && parts[1] && parts[2] && parts[3]) {
        result = Py_BuildValue("(OnOOOOO)", capsule, (Py_ssize_t)ggtok_chat_memory(chat),
                               ggtok_chat_reads_time(chat) ? Py_True : Py_False, parts[0], parts[1],
                               parts[2], parts[3]);
    }
    for (int i = 0; i < 4; i++) Py_XDECREF(parts[i]);
    Py_DECREF(capsule);
    return result;
}

/* ---- requests ---- */

/* Indices of the arguments. */
enum { CHAT, CONVERSATIONS, OPTIONS, NAMED, WANT, FLAGS, BITS, TIME, MARKER, TEMPLATE };

/* The request's fields besides its messages, in the order of OPTIONS. */
static const char *const fields[] = {"tools",
                                     "add_generation_prompt",
                                     "continue_final_message",
                                     "tool_choice",
                                     "parallel_tool_calls",
                                     "response_format",
                                     "reasoning_format",
                                     "reasoning_effort",
                                     "chat_template_kwargs"};
enum { N_FIELDS = 9 };

typedef struct request {
    PyObject *self;
    const ggtok_chat *chat;
    const jinja_template *template; /* rendered instead of the chat's, or NULL */
    PyObject *options, *named;      /* a tuple, its values None if not set; a dict or None */
    unsigned long bits, want, flags;
    chat_options how;
} request;

typedef enum outcome { READ, FAILED, FAILED_TO_ENCODE, RAISED, DONE } outcome;

typedef struct job {
    chat_job job;
    outcome outcome;
    PyObject *exception; /* RAISED */
    PyObject *bytes;     /* the owner of `json`, or NULL */
    char *json;          /* JSON text, parsed without the GIL */
    size_t n_json;
    size_t begin, n;   /* range in the shared buffer, in bytes; n: number of ids if only counted */
    const void *alone; /* the result of a single job, which isn't copied */
    size_t n_media;
    bool is_silent; /* the prompt has no text of the messages */
    ggtok_error encode_error;
} job;

typedef struct reading {
    const request *p;
    PyObject *conversation;
    chat_job *job;
} reading;

static void put(reader *r, jinja_dict *body, const char *name, jinja_value v) {
    ggtok_jinja_dict_put(r->call.mem, body, name, v);
}

static bool is_llama(const request *p) {
    return p->chat->like == GGTOK_LIKE_LLAMA_SERVER;
}

static jinja_value read_field(reader *r, const request *p, const char *name, PyObject *object) {
    const chat_path at = {NULL, name, 0};
    const chat_shape *items = NULL;
    bool is_chat = is_llama(p) && p->how.api == CHAT_COMPLETIONS;
    if (is_chat && !strcmp(name, "tools")) items = ggtok_chat_tool_shape;
    if (is_chat && !strcmp(name, "messages")) items = ggtok_chat_message_shape;
    return ggtok_python_read_object(r, object, NULL, items, &at, 1);
}

static jinja_value read_messages(reader *r, const request *p, PyObject *list) {
    const chat_path at = {NULL, "messages", 0};
    const chat_shape *shape = is_llama(p) ? ggtok_chat_message_shape : NULL;
    jinja_list *messages = ggtok_jinja_list_new(r->call.mem, (size_t)PyList_Size(list));
    for (Py_ssize_t i = 0; i < PyList_Size(list); i++) {
        const chat_path message = {&at, NULL, (size_t)i};
        PyObject *object = PyList_GetItem(list, i);
        ggtok_python_hold(r, object);
        ggtok_jinja_list_push(r->call.mem, messages,
                              ggtok_python_read_object(r, object, shape, NULL, &message, 2));
    }
    return jinja_of_list(messages);
}

/* Reads a whole request: a dict, as in llama-server's bodies. */
static void read_body(reader *r, const request *p, PyObject *dict, jinja_dict *body) {
    Py_ssize_t pos = 0, n;
    PyObject *key, *value;
    while (PyDict_Next(dict, &pos, &key, &value)) {
        const char *name = PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, &n) : NULL;
        PyErr_Clear();
        if (!name || strlen(name) != (size_t)n) continue; /* no field */
        ggtok_python_hold(r, key);
        ggtok_python_hold(r, value);
        put(r, body,
            (const char *)ggtok_jinja_text_copy(r->call.mem, name, strlen(name) + 1, 0)->data,
            read_field(r, p, name, value));
    }
}

static void read_request(jinja_arena *mem, void *user) {
    reader *r = user;
    const reading *more = r->more;
    const request *p = more->p;
    chat_job *job = more->job;
    jinja_dict *body = ggtok_jinja_dict_new(mem, 4);
    job->body = jinja_of_dict(body);
    if (PyBytes_Check(more->conversation)) {
        /* parsed without the GIL */
    } else if (PyDict_CheckExact(more->conversation)) {
        read_body(r, p, more->conversation, body);
    } else {
        put(r, body, "messages", read_messages(r, p, more->conversation));
    }
    for (Py_ssize_t i = 0; i < N_FIELDS && p->options != Py_None; i++) {
        PyObject *option = PyTuple_GetItem(p->options, i);
        if (option != Py_None) put(r, body, fields[i], read_field(r, p, fields[i], option));
    }
    if (p->named != Py_None) {
        PyObject *key, *value;
        Py_ssize_t pos = 0, n;
        jinja_dict *named = ggtok_jinja_dict_new(mem, (size_t)PyDict_Size(p->named));
        while (PyDict_Next(p->named, &pos, &key, &value)) {
            const char *name = PyUnicode_AsUTF8AndSize(key, &n);
            if (!name) ggtok_python_raised(r);
            const chat_path at = {NULL, name, 0};
            ggtok_python_hold(r, key);
            ggtok_python_hold(r, value);
            jinja_text *text = ggtok_jinja_text_copy(mem, name, (size_t)n, 0);
            ggtok_jinja_dict_set(mem, named, jinja_of_text(text),
                                 ggtok_python_read_object(r, value, NULL, NULL, &at, 2));
        }
        job->named = jinja_of_dict(named);
    }
}

/* Takes the exception that is set, if it is an Exception; others end the whole call. */
static PyObject *take_exception(void) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (value && PyObject_IsInstance(value, PyExc_Exception) == 1) {
        Py_XDECREF(type);
        Py_XDECREF(trace);
        return value;
    }
    PyErr_Restore(type, value, trace);
    return NULL;
}

static void read_job(const request *p, PyObject *conversation, job *j) {
    const reading more = {p, conversation, &j->job};
    j->outcome = FAILED;
    if (ggtok_chat_begin(&j->job, &p->how, 0)) return;
    j->job.chat = p->chat;
    j->job.template = p->template;
    reader r = ggtok_python_reader(j->job.env, is_llama(p) ? JINJA_LLAMA_CPP : JINJA_TRANSFORMERS);
    r.call.language = p->how.language == CHAT_LLAMA_SERVER ? CHAT_LLAMA_SERVER : CHAT_PYTHON;
    r.is_request = true;
    r.names = p->chat->file.names;
    r.convert = convert_function;
    r.more = &more;
    ggtok_status status = ggtok_python_read(&r, read_request, &j->job.error);
    if (r.raised) {
        j->outcome = RAISED;
        j->exception = take_exception();
        return;
    }
    j->outcome = status ? FAILED : READ;
    if (PyBytes_Check(conversation)) {
        Py_INCREF(conversation);
        j->bytes = conversation;
        j->json = PyBytes_AsString(conversation);
        j->n_json = (size_t)PyBytes_Size(conversation);
    }
}

/* ---- without the GIL ---- */

/* Parses a job's JSON text, a request or a list of messages, to which the options are added. */
static void parse_json(jinja_arena *mem, void *user) {
    job *j = user;
    const chat_call call = {.mem = mem, .language = j->job.options->language};
    jinja_dict *options = j->job.body.as.dict;
    ggtok_jinja_env_grow(j->job.env, j->n_json);
    jinja_value parsed = ggtok_chat_parsed(&call, j->job.chat->like, j->json, j->n_json);
    if (parsed.type != JINJA_DICT) {
        ggtok_jinja_dict_put(mem, options, "messages", parsed);
        return;
    }
    for (uint32_t i = 0; i < options->n; i++) {
        ggtok_jinja_dict_set(mem, parsed.as.dict, options->entries[i].key,
                             options->entries[i].value);
    }
    j->job.body = parsed;
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

/* Runs a job. `all` is the buffer that jobs share; NULL if this is the only job. */
static void run_job(const request *p, job *j, ggtok_context *ctx, bytebuf *all) {
    if (j->outcome != READ) return;
    bool kept;
    j->outcome = FAILED;
    if (j->json &&
        ggtok_jinja_protect(ggtok_jinja_env_arena(j->job.env), parse_json, j, &j->job.error))
        return;
    if (ggtok_chat_render_job(&j->job)) return;
    j->n_media = j->job.n_media;
    j->is_silent = p->want != GGTOK_CHAT_VARIABLES && ggtok_chat_is_silent(&j->job);
    j->outcome = DONE;
    if (p->want >= GGTOK_CHAT_PROMPT) return;
    if (p->want == GGTOK_CHAT_TEXT) {
        kept = keep(all, j, j->job.prompt->data, j->job.prompt->n);
    } else {
        ggtok_ids ids;
        if (ggtok_chat_encode_job(&j->job, ctx, (unsigned)p->flags,
                                  (p->bits & GGTOK_CHAT_TRUSTED) != 0, &ids, &j->encode_error)) {
            j->outcome = j->job.error.status ? FAILED : FAILED_TO_ENCODE;
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

/* Runs the jobs without the GIL. `ctx` is NULL if nothing is encoded. */
static void run_jobs(const request *p, job *jobs, size_t n, ggtok_context *ctx, bytebuf *all) {
    PyThreadState *state = PyEval_SaveThread();
    bool copied = n > 1 && p->want < GGTOK_CHAT_PROMPT;
    for (size_t i = 0; i < n; i++) {
        run_job(p, &jobs[i], ctx, n == 1 ? NULL : all);
        if (copied) ggtok_chat_end(&jobs[i].job);
    }
    PyEval_RestoreThread(state);
}

/* ---- results ---- */

typedef struct ranges_job {
    const jinja_text *t;
    jinja_label label;
    ggtok_range *ranges;
    size_t n;
} ranges_job;

static void find_ranges(jinja_arena *mem, void *user) {
    ranges_job *j = user;
    j->ranges = ggtok_jinja_ranges(mem, j->t, j->label, &j->n);
}

static PyObject *ranges_of(chat_job *job, jinja_label label) {
    ranges_job j = {.t = job->prompt, .label = label};
    if (ggtok_jinja_protect(ggtok_jinja_env_arena(job->env), find_ranges, &j, &job->error)) {
        PyObject *error = ggtok_python_template_error(&job->error);
        if (error) PyErr_SetObject((PyObject *)Py_TYPE(error), error);
        Py_XDECREF(error);
        return NULL;
    }
    return ggtok_python_ranges(j.ranges, j.n);
}

static PyObject *origins_of(const chat_job *job) {
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < jinja_text_count(job->prompt); i++) {
        ggtok_origin o = ggtok_chat_origin_of(job, i);
        bool known = o.kind == GGTOK_FROM_MESSAGE;
        PyObject *row = known ? Py_BuildValue("(nns#)", (Py_ssize_t)o.end, (Py_ssize_t)o.message,
                                              o.field.data, (Py_ssize_t)o.field.n)
                              : Py_BuildValue("(nOO)", (Py_ssize_t)o.end, Py_None,
                                              o.kind == GGTOK_FROM_TEMPLATE ? Py_True : Py_None);
        if (!row || PyList_Append(list, row)) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *prompt_of(job *j) {
    chat_job *job = &j->job;
    ggtok_range *media;
    size_t n_media;
    if (ggtok_chat_find_media(job, &media, &n_media))
        return ggtok_python_template_error(&job->error);
    PyObject *parts[] = {
        PyUnicode_DecodeUTF8((const char *)job->prompt->data, (Py_ssize_t)job->prompt->n, NULL),
        ranges_of(job, JINJA_FROM_TEMPLATE), ranges_of(job, JINJA_GENERATED),
        ggtok_python_ranges(media, n_media), origins_of(job)};
    PyObject *result = NULL;
    if (parts[0] && parts[1] && parts[2] && parts[3] && parts[4])
        result = PyTuple_Pack(5, parts[0], parts[1], parts[2], parts[3], parts[4]);
    for (size_t i = 0; i < 5; i++) Py_XDECREF(parts[i]);
    return result;
}

static PyObject *variables_given(const jinja_env *env) {
    static const jinja_dict none = {0};
    const jinja_dict *inputs = env->inputs ? env->inputs : &none;
    return ggtok_python_object_of(jinja_of_dict((jinja_dict *)inputs));
}

/* Returns the result of a job: its value, or an exception that isn't raised. */
static PyObject *result_of(const request *p, job *j, const bytebuf *all) {
    switch (j->outcome) {
    case DONE:
        if (p->want == GGTOK_CHAT_COUNT) return PyLong_FromSize_t(j->n);
        if (p->want == GGTOK_CHAT_PROMPT) return prompt_of(j);
        if (p->want == GGTOK_CHAT_VARIABLES) return variables_given(j->job.env);
        const char *data = j->alone ? j->alone : j->n ? (const char *)all->data + j->begin : "";
        if (p->want == GGTOK_CHAT_TEXT) return PyUnicode_DecodeUTF8(data, (Py_ssize_t)j->n, NULL);
        PyObject *list =
            ggtok_python_list(p->self, (const int32_t *)(const void *)data, j->n / sizeof(int32_t));
        return p->bits & GGTOK_CHAT_UNTRACKED ? list : ggtok_python_list_end(list);
    case RAISED: return Py_INCREF(j->exception), j->exception;
    case FAILED_TO_ENCODE: return ggtok_python_error(p->self, &j->encode_error);
    default: return ggtok_python_template_error(&j->job.error);
    }
}

/* ---- the call ---- */

static bool read_arguments(PyObject *const *args, request *p) {
    Py_ssize_t n;
    p->chat = PyCapsule_GetPointer(args[CHAT], CHAT_CAPSULE);
    if (!p->chat) return false;
    p->options = args[OPTIONS];
    p->named = args[NAMED];
    p->want = PyLong_AsUnsignedLong(args[WANT]);
    p->flags = PyLong_AsUnsignedLong(args[FLAGS]);
    p->bits = PyLong_AsUnsignedLong(args[BITS]);
    if (args[TIME] != Py_False && !read_time(args[TIME], &p->how.now)) return false;
    p->how.marker = PyUnicode_AsUTF8AndSize(args[MARKER], &n);
    if (!p->how.marker) return false;
    p->how.n_marker = (size_t)n;
    p->how.language = p->bits & GGTOK_CHAT_SERVER ? CHAT_LLAMA_SERVER : CHAT_PYTHON;
    p->how.keeps_last = p->bits & GGTOK_CHAT_NO_PREFILL;
    p->how.allow_empty = p->bits & GGTOK_CHAT_ALLOW_EMPTY;
    p->how.before_more = p->bits & GGTOK_CHAT_BEFORE_MORE;
    p->how.skips_media = p->bits & GGTOK_CHAT_SKIP_MEDIA;
    p->how.skips_unknown = p->bits & (GGTOK_CHAT_SKIP_UNKNOWN | GGTOK_CHAT_SKIP_MEDIA);
    p->how.keep_ends = p->bits & GGTOK_CHAT_KEEP_ENDS;
    p->how.only_variables = p->want == GGTOK_CHAT_VARIABLES;
    if (args[TEMPLATE] != Py_None &&
        !(p->template = PyCapsule_GetPointer(args[TEMPLATE], GGTOK_PYTHON_TEMPLATE)))
        return false;
    p->how.as_text = p->want == GGTOK_CHAT_TEXT;
    p->how.api = p->bits & GGTOK_CHAT_ANTHROPIC   ? CHAT_ANTHROPIC
                 : p->bits & GGTOK_CHAT_RESPONSES ? CHAT_RESPONSES
                                                  : CHAT_COMPLETIONS;
    return !PyErr_Occurred();
}

/* (chat; list of conversations: lists of messages, requests as dicts, or JSON text as bytes; tuple
 * of the request's other fields or None; dict of named variables or None; what to return; flags of
 * ggtok_encode; bits; time, None: now, or False if no template uses it; media marker; a template to render instead, or None) -> (list
 * of results, number of images, audio and video, number of prompts without text of messages) */
PyObject *ggtok_python_chat(PyObject *self, PyObject *const *args, Py_ssize_t n_args) {
    (void)n_args;
    request p = {.self = self};
    PyObject *conversations = args[CONVERSATIONS], *results = NULL;
    if (!read_arguments(args, &p)) return NULL;
    size_t n = (size_t)PyList_Size(conversations), n_media = 0, n_silent = 0;
    job *jobs = ggtok_mem_zalloc(mem_mul(n + 1, sizeof *jobs));
    bytebuf all = {0};
    ggtok_error err;
    ggtok_context *ctx = NULL;
    if (!jobs) return PyErr_NoMemory();
    for (size_t i = 0; i < n; i++) {
        PyObject *conversation = PyList_GetItem(conversations, (Py_ssize_t)i);
        if (!conversation) goto done;
        Py_INCREF(conversation);
        read_job(&p, conversation, &jobs[i]);
        Py_DECREF(conversation);
        if (jobs[i].outcome == RAISED && !jobs[i].exception) goto done;
    }
    if (p.want <= GGTOK_CHAT_COUNT && !(ctx = ggtok_pool_acquire(ggtok_python_pool(self), &err))) {
        PyObject *error = ggtok_python_error(self, &err);
        if (error) PyErr_SetObject((PyObject *)Py_TYPE(error), error);
        Py_XDECREF(error);
        goto done;
    }
    run_jobs(&p, jobs, n, ctx, &all);
    results = ggtok_python_list_begin((Py_ssize_t)n);
    for (size_t i = 0; results && i < n; i++) {
        PyObject *result = result_of(&p, &jobs[i], &all);
        n_media += jobs[i].n_media;
        n_silent += jobs[i].is_silent;
        if (result)
            PyList_SetItem(results, (Py_ssize_t)i, result);
        else
            Py_CLEAR(results);
    }
    ggtok_python_list_end(results);
done:
    if (ctx) ggtok_pool_release(ggtok_python_pool(self), ctx);
    for (size_t i = 0; i < n; i++) {
        ggtok_chat_end(&jobs[i].job);
        Py_XDECREF(jobs[i].exception);
        Py_XDECREF(jobs[i].bytes);
    }
    ggtok_mem_free(jobs);
    ggtok_mem_free(all.data);
    if (!results) return NULL;
    return Py_BuildValue("(Nnn)", results, (Py_ssize_t)n_media, (Py_ssize_t)n_silent);
}

/* ---- bodies of other APIs ---- */

typedef struct conversion {
    PyObject *body;
    chat_api api;
    jinja_value converted;
} conversion;

static void convert_body(jinja_arena *mem, void *user) {
    reader *r = user;
    conversion *c = (conversion *)r->more;
    const chat_path at = {NULL, "the request", 0};
    (void)mem;
    jinja_value body = ggtok_python_read_object(r, c->body, NULL, NULL, &at, 0);
    c->converted = c->api == CHAT_ANTHROPIC ? ggtok_chat_from_anthropic(&r->call, body)
                                            : ggtok_chat_from_responses(&r->call, body);
}

/* (body, GGTOK_CHAT_ANTHROPIC or GGTOK_CHAT_RESPONSES) -> the body for the chat API, or an exception
 * that isn't raised */
static PyObject *convert(PyObject *self, PyObject *args) {
    long api;
    conversion c = {.api = CHAT_RESPONSES, .converted = jinja_none()};
    jinja_env *env = NULL;
    jinja_error err;
    const jinja_options options = {0};
    (void)self;
    if (!PyArg_ParseTuple(args, "Ol", &c.body, &api)) return NULL;
    if (api == GGTOK_CHAT_ANTHROPIC) c.api = CHAT_ANTHROPIC;
    PyObject *result = NULL;
    if (!ggtok_jinja_env_new(&options, &env, &err)) {
        reader r = ggtok_python_reader(env, JINJA_LLAMA_CPP);
        r.call.language = CHAT_LLAMA_SERVER;
        r.is_request = true;
        r.convert = convert_function;
        r.more = &c;
        if (!ggtok_python_read(&r, convert_body, &err))
            result = ggtok_python_object_of(c.converted);
        else if (!r.raised)
            result = ggtok_python_template_error(&err);
    } else {
        result = ggtok_python_template_error(&err);
    }
    ggtok_jinja_env_free(env);
    return result;
}

static PyMethodDef functions[] = {{"convert", convert, METH_VARARGS, NULL}};

bool ggtok_chat_bind(uintptr_t list, uintptr_t to_plain) {
    return ggtok_python_bind(functions, 1, list, to_plain, &convert_function);
}
