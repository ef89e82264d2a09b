"""llama.cpp's tokenizer for GGUF vocabularies, without llama.cpp.

    >>> import ggtok
    >>> tok = ggtok.load("model.gguf")
    >>> ids = tok.encode("Hello, world")
    >>> tok.decode(ids)

:func:`load` reads the vocabulary of a GGUF file. The :class:`Tokenizer` that it returns encodes
text to the same ids as llama.cpp, and decodes ids to text.
"""

from ggtok._version import __version__
from ggtok.errors import (
    ArgumentError,
    DocumentError,
    FileError,
    GGTokError,
    GGUFError,
    InvalidTypeError,
    InvalidValueError,
    MissingExtraError,
    OutOfMemoryError,
    TemplateError,
    TextDecodeError,
    TextEncodeError,
    TokenIdError,
    UnknownPreTokenizerError,
    UnreachableError,
    VocabError,
    VocabWarning,
)
from ggtok.text import Chunk
from ggtok.text.stream_decoder import StreamDecoder
from ggtok.text.stream_encoder import StreamEncoder
from ggtok.tokenizer import CacheInfo, TokenAttr, Tokenizer, load

TYPE_CHECKING = False  # importing typing takes longer than importing the rest of ggtok
if TYPE_CHECKING:
    from ggtok.corpora.summary import EncodeProgress, Summary
    from ggtok.inspect.doctor import doctor
    from ggtok.inspect.doctor.codes import Finding
    from ggtok.inspect.fix import edit
    from ggtok.prompts import PromptComparison, PromptSide, compare_prompts
    from ggtok.trim import trim_chat
    from ggtok.vocabularies.contents import ConversionReport, Report, TrainingReport
    from ggtok.vocabularies.convert import convert
    from ggtok.vocabularies.counts import Progress, WordCounts, count_words
    from ggtok.vocabularies.edit import Edited, recover, undo
    from ggtok.vocabularies.read import vocabulary
    from ggtok.vocabularies.train import train
    from ggtok.vocabularies.vocabulary import Vocabulary

__all__ = [
    "ArgumentError",
    "CacheInfo",
    "Chunk",
    "ConversionReport",
    "DocumentError",
    "Edited",
    "EncodeProgress",
    "FileError",
    "Finding",
    "GGTokError",
    "GGUFError",
    "InvalidTypeError",
    "InvalidValueError",
    "MissingExtraError",
    "OutOfMemoryError",
    "Progress",
    "PromptComparison",
    "PromptSide",
    "Report",
    "StreamDecoder",
    "StreamEncoder",
    "Summary",
    "TemplateError",
    "TextDecodeError",
    "TextEncodeError",
    "TokenAttr",
    "TokenIdError",
    "Tokenizer",
    "TrainingReport",
    "UnknownPreTokenizerError",
    "UnreachableError",
    "VocabError",
    "VocabWarning",
    "Vocabulary",
    "WordCounts",
    "__version__",
    "compare_prompts",
    "convert",
    "count_words",
    "doctor",
    "edit",
    "load",
    "recover",
    "train",
    "trim_chat",
    "undo",
    "vocabulary",
]

# Names that most programs don't use, and the modules from which they are imported on first use.
_LAZY = {
    "ConversionReport": "vocabularies.contents",
    "Edited": "vocabularies.edit",
    "EncodeProgress": "corpora.summary",
    "Finding": "inspect.doctor.codes",
    "PromptComparison": "prompts",
    "PromptSide": "prompts",
    "Progress": "vocabularies.counts",
    "Report": "vocabularies.contents",
    "Summary": "corpora.summary",
    "TrainingReport": "vocabularies.contents",
    "Vocabulary": "vocabularies.vocabulary",
    "WordCounts": "vocabularies.counts",
    "compare_prompts": "prompts",
    "convert": "vocabularies.convert",
    "count_words": "vocabularies.counts",
    "doctor": "inspect.doctor",
    "edit": "inspect.fix",
    "recover": "vocabularies.edit",
    "train": "vocabularies.train",
    "trim_chat": "trim",
    "undo": "vocabularies.edit",
    "vocabulary": "vocabularies.read",
}


# Names with which other libraries load a tokenizer.
_OTHER_NAMES = (
    *("AutoTokenizer", "Llama", "LlamaTokenizer", "encoding_for_model", "from_file"),
    *("from_pretrained", "get_encoding", "load_tokenizer"),
)


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        use = ": use ggtok.load(path or name)" if name in _OTHER_NAMES else ""
        raise AttributeError(f"module 'ggtok' has no attribute {name!r}{use}")
    from importlib import import_module

    value = getattr(import_module(f"ggtok.{_LAZY[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
