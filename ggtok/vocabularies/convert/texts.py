"""Lines for comparing two tokenizers, natural and hostile; the same each time."""

# ruff: noqa: RUF001 (letters that look like others are the point)

from __future__ import annotations

import random
import sys
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache

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
    """Assigned characters by general category, without surrogates and private use."""
    members: dict[str, list[str]] = {}
    for code in range(1, sys.maxunicode + 1):
        c = chr(code)
        category = unicodedata.category(c)
        if category not in ("Cs", "Cn", "Co"):
            members.setdefault(category, []).append(c)
    return members


@cache
def _prose() -> str:
    """A long text from Python's standard library."""
    import pydoc_data.topics

    return "\n".join(pydoc_data.topics.topics.values())


class Lines:
    """Generates lines. Each method makes one kind of line."""

    def __init__(self, words: Sequence[str], special: Sequence[str], seed: int = 0) -> None:
        self._random = random.Random(seed)
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
        return [*_NATURAL[:n], *(kinds[i % len(kinds)]() for i in range(n - len(_NATURAL)))]

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
