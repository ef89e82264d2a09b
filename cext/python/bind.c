#include "python/bind.h"

bool ggtok_python_bind(PyMethodDef *functions, size_t n, uintptr_t list, uintptr_t error,
                       PyObject **error_class) {
    PyGILState_STATE state = PyGILState_Ensure(); /* cffi released the GIL */
    bool ok = true;
    if (error_class) {
        *error_class = (PyObject *)error;
        Py_INCREF(*error_class);
    }
    for (size_t i = 0; ok && i < n; i++) {
        PyObject *f = PyCFunction_NewEx(&functions[i], NULL, NULL);
        ok = f && PyList_Append((PyObject *)list, f) == 0;
        Py_XDECREF(f);
    }
    PyGILState_Release(state);
    return ok;
}
