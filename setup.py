"""Options that pyproject.toml can't express: the C module, defined by cext/build_ffi.py, and the
wheel's tag."""

import os
import sysconfig
from concurrent.futures import ThreadPoolExecutor

from setuptools import setup
from setuptools.command.build_ext import build_ext

# One wheel serves CPython 3.10 and later, except free-threaded builds, which
# have no limited API.
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


class ParallelBuild(build_ext):
    """Compiles several files at the same time. The option --parallel of build_ext doesn't: it
    compiles several modules at the same time, and there is only one."""

    def build_extensions(self):
        compile_files = self.compiler.compile
        if not getattr(self.compiler, "initialized", True):  # MSVC: threads must not do this
            self.compiler.initialize()

        def compile_in_parallel(sources, **options):
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                compiled = pool.map(lambda source: compile_files([source], **options), sources)
                return [name for names in compiled for name in names]

        self.compiler.compile = compile_in_parallel
        super().build_extensions()


setup(
    cffi_modules=["cext/build_ffi.py:ffibuilder"],
    cmdclass={"build_ext": ParallelBuild},
    options={} if FREE_THREADED else {"bdist_wheel": {"py_limited_api": "cp310"}},
)
