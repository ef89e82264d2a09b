"""Options that pyproject.toml can't express: the C module, defined by cext/build_ffi.py, and the
wheel's tag."""

import sysconfig

from setuptools import setup

# One wheel serves CPython 3.10 and later, except free-threaded builds, which
# have no limited API.
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))

setup(
    cffi_modules=["cext/build_ffi.py:ffibuilder"],
    options={} if FREE_THREADED else {"bdist_wheel": {"py_limited_api": "cp310"}},
)
