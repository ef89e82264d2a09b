#include "python/signals.h"

#include <time.h>

enum { POLL_MS = 50 };

static double now_ms(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

void ggtok_python_leave(python_call *call) {
    call->due = now_ms() + POLL_MS;
    call->thread = PyEval_SaveThread();
}

void ggtok_python_return(python_call *call) {
    PyEval_RestoreThread(call->thread);
}

bool ggtok_python_keep_going(void *user) {
    python_call *call = user;
    double now = now_ms();
    if (now < call->due && now > call->due - 2 * POLL_MS)
        return true; /* unless the clock was set back */
    call->due = now + POLL_MS;
    PyEval_RestoreThread(call->thread);
    bool keep_going = !PyErr_Occurred() && !PyErr_CheckSignals();
    call->thread = PyEval_SaveThread();
    return keep_going;
}

bool ggtok_python_on_main_thread(void) {
    PyObject *threading = PyImport_ImportModule("threading");
    PyObject *main = threading ? PyObject_CallMethod(threading, "main_thread", NULL) : NULL;
    PyObject *ident = main ? PyObject_GetAttrString(main, "ident") : NULL;
    bool same = ident && PyLong_AsUnsignedLong(ident) == PyThread_get_thread_ident();
    Py_XDECREF(ident);
    Py_XDECREF(main);
    Py_XDECREF(threading);
    PyErr_Clear();
    return same;
}
