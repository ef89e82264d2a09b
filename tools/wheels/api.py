"""CPython's stable ABI for the oldest version that the wheels support."""

from __future__ import annotations

from typing import Any

from tools.wheels.targets import PYTHON_TAG


def _names(rows: dict[Any, Any]) -> set[str]:
    from abi3info.models import PyVersion

    oldest = PyVersion(3, int(PYTHON_TAG.removeprefix("cp3")))
    return {symbol.name for symbol, row in rows.items() if row.added <= oldest}


def functions() -> set[str]:
    from abi3info import FUNCTIONS

    return _names(FUNCTIONS)


def data() -> set[str]:
    from abi3info import DATAS

    return _names(DATAS)


def definitions() -> str:
    """Returns python3.def: the symbols that python3.dll exports."""
    lines = [*sorted(functions()), *(f"{name} DATA" for name in sorted(data()))]
    return "LIBRARY python3.dll\nEXPORTS\n" + "".join(f"    {line}\n" for line in lines)
