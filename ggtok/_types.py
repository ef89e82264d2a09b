"""The types used in annotations, imported lazily.

Annotations in this package are strings (``types.Text``), which type checkers read and
``typing.get_type_hints`` evaluates. Importing ``typing`` takes longer than the rest of
``import ggtok``, and importing NumPy many times longer, so no module imports either of
them just for annotations.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from datetime import datetime as datetime
    from typing import Any as Any
    from typing import BinaryIO as BinaryIO
    from typing import Literal, Protocol, TypeAlias
    from typing import SupportsIndex as SupportsIndex

    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Buffer as Buffer

    from ggtok.arrow import ArrowIds as ArrowIds
    from ggtok.corpora.summary import EncodeProgress as EncodeProgress
    from ggtok.corpora.summary import Summary as Summary
    from ggtok.explain.steps import Explanation as Explanation
    from ggtok.explain.steps import MergeTree as MergeTree
    from ggtok.sources.model_files import Source as Source
    from ggtok.text.shown import Shown as Shown
    from ggtok.text.stats import Stats as Stats

    class ArrowStream(Protocol):
        """An object that exports a stream of Arrow data: pyarrow, polars, pandas, duckdb..."""

        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

    class ArrowArray(Protocol):
        """An object that exports an array of Arrow data."""

        def __arrow_c_array__(
            self, requested_schema: object | None = None
        ) -> tuple[object, object]: ...

    Text: TypeAlias = str | Buffer
    ParseSpecial: TypeAlias = bool | Collection[str | Buffer | SupportsIndex]
    Ids: TypeAlias = Iterable[SupportsIndex] | NDArray[np.integer[Any]]
    Texts: TypeAlias = Iterable[Text] | ArrowStream | ArrowArray
    Int32Array: TypeAlias = NDArray[np.int32]
    Int64Array: TypeAlias = NDArray[np.int64]
    Like: TypeAlias = Literal["llama.cpp", "transformers"]

    class Model(Protocol):
        """A pydantic model, or another object with ``model_dump``."""

        def model_dump(self) -> dict[str, Any]: ...

    Messages: TypeAlias = Sequence[Mapping[str, Any] | Model]
    Known: TypeAlias = tuple[int, Ids]
    ImageTokens: TypeAlias = SupportsIndex | Callable[[Mapping[str, Any]], SupportsIndex]
    Unit: TypeAlias = Literal["byte", "char", "utf16"]
    SourceKind: TypeAlias = Literal["text", "jsonl", "parquet", "arrow"]
    IdFormat: TypeAlias = Literal["raw", "megatron", "npy", "arrow"]
    IdType: TypeAlias = Literal["auto", "uint16", "uint32", "int32"]
    FaultRule: TypeAlias = Literal["raise", "replace", "skip"]
    Side: TypeAlias = Literal["right", "left"]
    Special: TypeAlias = Literal["blank", "keep"]
    UserDefined: TypeAlias = Literal["parse", "plain"]

else:

    class _InstanceOf:
        """An annotation that makes pydantic check with ``isinstance(value, cls)``."""

        def __init__(self, cls: type) -> None:
            self.cls = cls

        def __get_pydantic_core_schema__(self, source: object, handler: object) -> object:
            return {"type": "is-instance", "cls": self.cls}

    def _resolved() -> "dict[str, object]":
        import datetime
        import typing
        from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

        import numpy as np
        from numpy.typing import NDArray

        from ggtok.arrow import ArrowIds
        from ggtok.corpora.summary import EncodeProgress, Summary
        from ggtok.explain.steps import Explanation, MergeTree
        from ggtok.sources.model_files import Source
        from ggtok.text.shown import Shown
        from ggtok.text.stats import Stats

        @typing.runtime_checkable
        class ArrowStream(typing.Protocol):
            def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...

        @typing.runtime_checkable
        class Reader(typing.Protocol):
            def read(self, n: int = -1) -> bytes: ...

        class AnyBuffer(type):
            def __instancecheck__(cls, object: object) -> bool:
                try:
                    memoryview(object)
                except TypeError:
                    return False
                return True

        class AnyTexts(type):
            def __instancecheck__(cls, object: object) -> bool:
                names = "__iter__", "__getitem__", "__arrow_c_stream__", "__arrow_c_array__"
                return any(hasattr(object, name) for name in names)

        @typing.runtime_checkable
        class Model(typing.Protocol):
            def model_dump(self) -> dict: ...

        def checked(hint: object, cls: type) -> object:
            return typing.Annotated[hint, _InstanceOf(cls)]

        try:
            from collections.abc import Buffer  # from Python 3.12 on
        except ImportError:
            Buffer = typing.Union[bytes, bytearray, memoryview]  # noqa: N806, UP007
        buffer = checked(Buffer, AnyBuffer("Buffer", (), {}))
        index = checked(typing.SupportsIndex, typing.SupportsIndex)
        model = checked(Model, Model)
        text = typing.Union[str, buffer]  # noqa: UP007
        ids = typing.Union[Iterable[index], NDArray[np.integer[typing.Any]]]  # noqa: UP007
        of_part = Callable[[Mapping[str, typing.Any]], typing.Any]
        choice = Collection[typing.Union[str, buffer, index]]  # noqa: UP007
        return {
            "Any": typing.Any,
            "ArrowIds": ArrowIds,
            "ArrowStream": checked(ArrowStream, ArrowStream),
            "BinaryIO": checked(typing.BinaryIO, Reader),
            "Buffer": buffer,
            "EncodeProgress": EncodeProgress,
            "Explanation": Explanation,
            "FaultRule": typing.Literal["raise", "replace", "skip"],
            "SourceKind": typing.Literal["text", "jsonl", "parquet", "arrow"],
            "IdFormat": typing.Literal["raw", "megatron", "npy", "arrow"],
            "IdType": typing.Literal["auto", "uint16", "uint32", "int32"],
            "Ids": checked(ids, Iterable),
            "Int32Array": NDArray[np.int32],
            "Int64Array": NDArray[np.int64],
            "Source": Source,
            "Like": typing.Literal["llama.cpp", "transformers"],
            "Known": tuple[int, checked(ids, Iterable)],  # type: ignore[misc]
            "ImageTokens": typing.Union[index, of_part],  # noqa: UP007
            "MergeTree": MergeTree,
            "Messages": Sequence[typing.Union[Mapping[str, typing.Any], model]],  # noqa: UP007
            "ParseSpecial": typing.Union[bool, checked(choice, Collection)],  # noqa: UP007
            "Summary": Summary,
            "Shown": Shown,
            "Stats": Stats,
            "Side": typing.Literal["right", "left"],
            "Special": typing.Literal["blank", "keep"],
            "SupportsIndex": index,
            "Text": text,
            "Texts": checked(Iterable[text], AnyTexts("Texts", (), {})),
            "Unit": typing.Literal["byte", "char", "utf16"],
            "UserDefined": typing.Literal["parse", "plain"],
            "datetime": datetime.datetime,
        }

    def __getattr__(name: str) -> object:
        types = {} if name.startswith("__") else _resolved()
        if name not in types:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals().update(types)
        return types[name]
