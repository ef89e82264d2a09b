/* Handles Python's signals during a long call; see ggtok_interrupt_fn. */
#ifndef GGTOK_PYTHON_SIGNALS_H
#define GGTOK_PYTHON_SIGNALS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>

/* A call that runs without the GIL. */
typedef struct python_call {
    PyThreadState *thread;
    double due; /* time of the next check for signals */
} python_call;

/* Release and reacquire the GIL. */
void ggtok_python_leave(python_call *call);
void ggtok_python_return(python_call *call);

/*
 * A ggtok_interrupt_fn whose `user` is the python_call: lets Python handle signals and returns
 * false if a handler has raised an exception (KeyboardInterrupt). Call it only on the main thread,
 * where handlers run. Another thread might never return: while the interpreter shuts down, CPython
 * (up to 3.13) ends it, freeing its stack, which the batch's other threads would still use.
 */
bool ggtok_python_keep_going(void *call);

/* Whether this is Python's main thread. False if that can't be determined. */
bool ggtok_python_on_main_thread(void);

#endif
