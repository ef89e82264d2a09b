/* Python's signals during a long call; see ggtok_interrupt_fn. */
#ifndef GGTOK_PYTHON_SIGNALS_H
#define GGTOK_PYTHON_SIGNALS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>

/* A call without the GIL. */
typedef struct python_call {
    PyThreadState *thread;
    double due; /* when signals are asked for again */
} python_call;

/* Gives up the GIL, and takes it back. */
void ggtok_python_leave(python_call *call);
void ggtok_python_return(python_call *call);

/*
 * A ggtok_interrupt_fn whose user is the python_call: lets Python handle signals, and is false once
 * a handler has raised (KeyboardInterrupt). Only for the main thread, where handlers run. Another
 * may never come back from here: once the interpreter is going down, CPython ends it (3.13 and
 * earlier), stack and all, and the batch's other threads would go on with what was there.
 */
bool ggtok_python_keep_going(void *call);

/* Whether this is Python's main thread. If that can't be found out, it isn't. */
bool ggtok_python_on_main_thread(void);

#endif
