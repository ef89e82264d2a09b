# The compiled module (cext/build_ffi.py). Only native/ imports it.
from typing import Any

ffi: Any
lib: Any
