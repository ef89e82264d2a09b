"""Lines for which tokenizers may differ: natural and hostile ones, always the same."""

from __future__ import annotations

import random
import sys
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache

from ggtok.vocabularies import spelling
from ggtok.vocabularies.convert.package_facts import PackageFacts
from ggtok.vocabularies.vocabulary import Vocabulary

_MAX_LINE = 4000


# ruff: noqa: RUF001 (letters that look like others are the point)


_NATURAL = (
    "The quick brown fox jumps over the lazy dog; it's 5 o'clock, and they've 1234567 left.",
    "Die größten Häuser stehen außerhalb: „Straße“, Übermut und 12,5 % Öl.",
    "L'été dernier, j'ai vu naître un cœur à l'hôtel — vingt-trois fois !",
    "Привет, мир! Съешь ещё этих мягких французских булок, да выпей чаю.",
    "我想在apple工作1314151天～ 他说:“你好，世界！”",
    "吾輩は猫である。名前はまだ無い。カタカナとｶﾀｶﾅ。",
    "안녕하세요, 세계! 나는 학교에 갑니다. 2024년 12월",
    "مرحبا بالعالم، كيف حالك؟ ١٢٣٤٥",
    "नमस्ते दुनिया! मैं हिन्दी में लिख रहा हूँ। १२३४",
    "สวัสดีชาวโลก ภาษาไทยไม่มีช่องว่าง",
    "İstanbul'da 3'üncü kez ılık çay; ŞİİR'in",
    "Xin chào thế giới, tôi đang học tiếng Việt.",
    "def f(x, *, y=0x1F):\n    return x**2 if x != y else None  # TODO\n",
    'for (int i = 0; i < 10; ++i) {\n\tprintf("%d\\n", a[i]);\n}\n',
    "https://example.org/a?b=c&d=%20#e  user@example.org  C:\\Temp\\x.txt",
    "😀👍🏽 👨‍👩‍👧‍👦 🏳️‍🌈 ✅ 🚀🚀 ❤️",
    "|a|b|\n|-|-|\n| 1 | 22 |\n\n* item\n  * sub\n",
)
_ALPHABETS = (
    " \n\r\ta1.'s",
    "  \n\nx",
    "'sStTrRveElLdDmM ſ",
    "0123456789 a,.",
    "1٣²½Ⅷ a",
    "aA中ーé\u0301 '",
    "ßſKİıǅǈ aB",
    "가ㄱあアア漢ก\u0e31 ",
    "\u00a0\u2003\u3000\u0085 \n.a",
    "$+<=>^~|`!?#&",
    "\u2581 a\n<0A>x",
    "'\u017f\u200c\u200d\u0301a 1!\n",
    "/\\\r\n .a",
    "a \x7f\u200b\ufeff\u180e",
    "éÉèÈñÑ ’‘'sS",
)


@cache
def _members() -> dict[str, list[str]]:
    """Returns assigned characters by general category, without surrogates and private use."""
    members: dict[str, list[str]] = {}
    for code in range(1, sys.maxunicode + 1):
        c = chr(code)
        category = unicodedata.category(c)
        if category not in ("Cs", "Cn", "Co"):
            members.setdefault(category, []).append(c)
    return members


@cache
def _prose() -> str:
    """Returns a long text from Python's standard library."""
    import pydoc_data.topics

    return "\n".join(pydoc_data.topics.topics.values())


class LineGenerator:
    """Generates lines. Each method generates one kind of line."""

    def __init__(self, words: Sequence[str], special: Sequence[str]) -> None:
        self._random = random.Random(0)
        self._words = words or ["word"]
        self._special = special or ["<s>"]
        self._kinds: tuple[tuple[Callable[[], str], int], ...] = (
            (self.natural, 6),
            (self.prose, 6),
            (self.vocabulary, 6),
            (self.categories, 3),
            (self.alphabet, 5),
            (self.digits, 1),
            (self.spaces, 2),
            (self.with_special, 2),
        )

    def make(self, n: int) -> list[str]:
        kinds = [kind for kind, weight in self._kinds for _ in range(weight)]
        lines = [*_NATURAL[:n], *self.positions(n // 6)]
        return [*lines[:n], *(kinds[i % len(kinds)]() for i in range(n - len(lines)))]

    def positions(self, n: int) -> list[str]:
        """Returns at most `n` lines that together have the special tokens in every position: at the
        start and the end, next to letters, spaces, newlines and each other."""
        shapes = [f"{text}a{text} b {text}{text}\n{text}" for text in self._special]
        size = sum(map(len, shapes)) // max(1, n) + 1
        lines = [""]
        for shape in shapes:
            if lines[-1] and len(lines[-1]) + len(shape) > min(size, _MAX_LINE):
                lines.append("")
            lines[-1] += shape
        return lines[:: len(lines) // max(1, n) + (len(lines) % max(1, n) > 0)]

    def _some(self, most: int) -> int:
        return self._random.randint(1, self._random.choice((2, 4, most)))

    def natural(self) -> str:
        line = self._random.choice(_NATURAL)
        start = self._random.randrange(len(line))
        return line[start:] + self._random.choice(("", " ", "\n", "\r\n")) + line[:start]

    def prose(self) -> str:
        text = _prose()
        start = self._random.randrange(len(text) - 200)
        return text[start : start + self._random.randint(1, 200)]

    def vocabulary(self) -> str:
        glue = self._random.choice(("", "", " ", "\n", "'"))
        return glue.join(self._random.choices(self._words, k=self._some(12)))

    def categories(self) -> str:
        members = _members()
        kinds = self._random.choices(list(members), k=self._some(4))
        chosen = [self._random.choice(members[kind]) for kind in kinds]
        return "".join(self._random.choices([*chosen, " ", "a", "\n", "1"], k=self._some(24)))

    def alphabet(self) -> str:
        return "".join(self._random.choices(self._random.choice(_ALPHABETS), k=self._some(24)))

    def digits(self) -> str:
        digits = self._random.choice(("0123456789", "٠١٢٣٤٥٦٧٨٩", "０１２３４"))
        return "".join(self._random.choices(digits, k=self._some(30)))

    def spaces(self) -> str:
        run = self._random.choice((" ", "\n", "\t", "\r\n", "\u00a0", " \n"))
        return "a" * self._random.randint(0, 1) + run * self._some(20) + "b"

    def with_special(self) -> str:
        return self.natural() + self._random.choice(self._special) + self.vocabulary()


def lines_for(vocabulary: Vocabulary, n: int, facts: PackageFacts | None = None) -> list[str]:
    """Returns lines for which tokenizers with this vocabulary may differ.

    They contain the tokens that the source's package knows, if there are facts, since the
    vocabulary may lack some of them.
    """
    special = [
        text.decode("utf-8", "ignore")
        for text, type in zip(vocabulary.texts, vocabulary.types, strict=True)
        if type in (spelling.CONTROL, spelling.USER_DEFINED)
    ]
    if facts is None or not facts.tokens:
        tokens: list[bytes] = list(vocabulary.tokens)
    else:
        scheme, added = spelling.scheme(vocabulary.model, vocabulary.pre), facts.added or {}
        tokens = [
            text.encode("utf-8", "replace")
            if scheme is None or id in added
            else spelling.decode_text(text.encode("utf-8", "replace"), spelling.NORMAL, scheme)
            for id, text in sorted(facts.tokens.items())
        ]
        special += [facts.tokens[id] for id in added if id in facts.tokens]
    words = []
    for token in tokens[:: max(1, len(tokens) // 4000)]:
        word = token.decode("utf-8", "ignore")
        if word.isprintable() or word.isspace():
            words.append(word[:200])
    special = [text[:200] for text in dict.fromkeys(special)]
    return [line[:_MAX_LINE] for line in LineGenerator(words, special).make(n)]
