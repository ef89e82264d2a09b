"""Generates texts that tokenizers may get wrong; they depend only on the seed.

No text crashes the reference: no sequence decodes above U+10FFFF, and no run of one character class
is long enough to overflow the stack of the reference's recursive regex.
"""

from __future__ import annotations

import pydoc_data.topics
import random
import string
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

# ---- sample text, of which slices are used in generated texts ----

# ruff: noqa: RUF001 (letters that look like others are the point)

# One or two sentences in many scripts, with the script's digits, punctuation and spacing.
PROSE = """
The kettle was already singing when she came in; "You're late," he said, "but it's no trouble."
Wir haben gestern drei große Äpfel gekauft, weil die Straße zum Markt endlich wieder frei war.
L'été dernier, nous avons marché jusqu'à la mer : c'était loin, mais le ciel était d'un bleu…
El niño preguntó: «¿Dónde está mi sombrero?» ¡Y nadie supo qué responderle aquella mañana!
Amanhã não há aula, então os irmãos vão à praia com a avó e o cão.
Perché non vieni anche tu? C'è posto per tutti, e la nonna ha già preparato gli gnocchi.
De fietsen staan buiten; 's avonds regent het vaak, maar m'n jas hangt al klaar.
Pojutrze pójdziemy nad rzekę, żeby zobaczyć, czy łódź jeszcze tam leży.
Příští týden přijede děda a přiveze košík čerstvých švestek z naší zahrady.
Az öregember lassan fölállt, és kinyitotta az ablakot, hogy a szellő bejöjjön.
Kalastaja työnsi veneensä järvelle ennen auringonnousua, eikä kukaan nähnyt häntä.
İstanbul'da yağmur dindi; ışıklar yandı, çocuklar sokağa çıktı ve güldüler.
Cô giáo kể rằng ngày xưa có một con đường nhỏ chạy qua cánh đồng lúa xanh mướt.
Kucing itu tidur di atas meja, padahal ikan di dapur belum dimasak-masak juga.
Mtoto alikimbia shambani akimwita mama yake, lakini upepo ulikuwa mkali mno.
Ọmọ náà rìn lọ sí ọjà, ó sì ra ẹja àti iṣu fún ìyá rẹ̀.
Старый фонарщик зажёг последний фонарь и тихо сказал: «Ну вот, теперь и домой».
Хлопчик під'їхав до мосту, але річка вже розлилася, і їхати далі було годі.
Сутринта планината беше покрита с мъгла, а пътят надолу едва се виждаше.
Ο ψαράς γύρισε αργά το βράδυ· τα δίχτυα του ήταν άδεια, μα εκείνος χαμογελούσε.
Հին ջրաղացը կանգնած էր գետի ափին, և երեխաները խաղում էին նրա շուրջը։
მეზღაპრემ ხმადაბლა დაიწყო: იყო და არა იყო რა, ერთი პატარა სოფელი მთებში.
הדוור הגיע בצהריים, הניח את המכתב על השולחן ואמר: "שָׁלוֹם, זה בשבילך".
جلس الشيخ تحت الشجرة وقال: «لكلِّ بابٍ مفتاحٌ، ولكلّ يومٍ خبرٌ جديد»؛ كان عمره ٧٣ عامًا.
پسرک کتاب را بست و گفت: می‌خواهم فردا به کوهستان بروم؛ ساعت ۶:۳۰ خوب است؟
بارش تھم گئی تو بچے گلی میں نکل آئے اور کاغذ کی کشتیاں چلانے لگے۔
ܥܠ ܝܕ ܢܗܪܐ ܩܐܡ ܐܝܠܢܐ ܪܒܐ܂
बूढ़ी दादी ने कहा, “कल १५ तारीख़ है; बाज़ार से दो किलो आटा और थोड़ी चीनी ले आना।”
আজ সকালে নদীর ঘাটে একটা ছোট্ট নৌকা এসে ভিড়ল, তাতে ছিল ২৩টি আম।
ਪਿੰਡ ਦੇ ਬਾਹਰ ਖੂਹ ਕੋਲ ਬੱਚੇ ਖੇਡ ਰਹੇ ਸਨ ਤੇ ਮੀਂਹ ਪੈਣ ਲੱਗ ਪਿਆ।
દાદાએ પતંગ ચગાવ્યો અને આખું ગામ છાપરે ચડી જોવા લાગ્યું.
மழை நின்றதும் குழந்தைகள் தெருவில் ஓடி விளையாடினார்கள்; பாட்டி சிரித்தாள்.
తాతయ్య చెట్టు కింద కూర్చుని పాత కథ ఒకటి మొదలుపెట్టాడు.
ಬೆಟ್ಟದ ಮೇಲಿನ ಮನೆಯಲ್ಲಿ ದೀಪ ಉರಿಯುತ್ತಿತ್ತು, ಹೊರಗೆ ಗಾಳಿ ಬೀಸುತ್ತಿತ್ತು.
മഴക്കാലത്ത് പുഴ നിറഞ്ഞൊഴുകി; കുട്ടികൾ കടലാസുതോണികൾ ഒഴുക്കി.
ගමේ පාර දිගේ ඇවිදින විට අපට මල් සුවඳක් දැනුණා.
เมื่อวานนี้แม่ซื้อมะม่วง ๑๒ ลูกที่ตลาดริมน้ำ แล้วเดินกลับบ้านก่อนฝนตก
ຕອນເຊົ້າພວກເຮົາໄປຕະຫຼາດຊື້ເຂົ້າໜຽວ ແລະ ປາ.
မနက်စောစောမှာ ကလေးတွေ ကျောင်းကို လမ်းလျှောက်သွားကြတယ်။
ក្មេងៗលេងនៅក្រោមដើមស្វាយ ហើយយាយអង្គុយមើលពីចម្ងាយ។
བོད་ཀྱི་གངས་རི་མཐོན་པོ་དེ་ནས་ཆུ་བོ་ཆེན་པོ་འབབ།
ትናንት ማታ ዝናብ ስለነበር ልጆቹ ቤት ውስጥ ሆነው ተረት ሰሙ።
昨天下午，老木匠把修好的椅子送了回来，还笑着说：“再坐二十年也没问题！”
昨夜雨疏風驟，鄰居的貓躲進了我家的閣樓；天亮時才跳窗離去。
駅前の古い喫茶店で、コーヒーを2杯飲みながら、祖父は「また明日ね」とつぶやいた。ｶﾀｶﾅも少し。
할머니는 마당에 앉아 콩을 고르시며, 내일은 비가 올 것 같다고 말씀하셨다.
ᠮᠣᠷᠢ ᠪᠠᠷ ᠶᠠᠪᠤᠵᠤ ᠠᠭᠤᠯᠠ ᠳᠠᠪᠠᠪᠠ᠃
ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ ᎤᏬᏚᎯ ᎨᏐᎢ.
ⵜⴰⵎⵓⵔⵜ ⵏⵏⵖ ⵜⵖⵓⴷⴰ ⴰⵟⴰⵙ.
𐌰𐌽𐌰 𐍆𐌰𐌹𐍂𐌲𐌿𐌽𐌾𐌰 𐍅𐌰𐍃 𐍃𐍄𐌰𐌹𐌽𐍃. 𐐔𐐯𐑅𐐨𐑉𐐯𐐻
""".strip().split("\n")

CODE = [
    'def f(x, *, y=None):\n    """Doc."""\n\n    return [i**2 for i in range(x) if i % 3 != y]\n',
    "for (int i = 0; i < n; ++i) {\n\t\tsum += a[i] * (b->c[i] >> 2) & 0xFFu; // don't\n\t}\n",
    "SELECT a.id, COUNT(*) AS n FROM t1 a LEFT JOIN t2 b ON a.id=b.id WHERE x >= '2019-01-01';\r\n",
    "<div class=\"a b\" data-x='1'>\n  <p>A &amp; B&nbsp;&#8217;s</p>\n</div><!-- end -->\n",
    '{\n  "k": [1, 2.5e-10, true, null],\n  "ü": "\\u00fc\\n"\n}\n',
    '#!/bin/sh\nset -eu; x=$(ls -1 | wc -l) && echo "${x:-0}" >&2 || exit 1\n',
    'fn main() -> Result<(), Box<dyn E>> { let s: &\'static str = "a"; println!("{s:?}"); }\n',
    "\\begin{align} \\frac{\\partial f}{\\partial x_{i}} &= \\sum_{k=1}^{n} a_k x^k \\\\\n",
    "https://example.org/a/b_c-d.html?q=%E4%BD%A0&x=1#frag-2 user.name+tag@mail.example.co.uk",
    "C:\\Users\\x\\file (1).txt 192.168.0.1:8080 2024-02-29T23:59:60Z +1 (555) 010-9999 $1,234.56",
]

EMOJI = ("👍 👍🏽 👨‍👩‍👧‍👦 🏳️‍🌈 🇫🇷🇯🇵 ❤️ ☺︎ 1️⃣ 🧑🏿‍🚀 🫠 🤷‍♀️ ✈️ © ™ ‼️ 🏴󠁧󠁢󠁳󠁣󠁴󠁿").split()


# ---- generated texts ----

MAX_BYTES = 6000

# The reference's white space, and similar characters that aren't white space.
WHITE_SPACE = [
    chr(c)
    for c in (
        *(*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B)),
        *(0x2028, 0x2029, 0x202F, 0x205F, 0x3000),
    )
]
NEAR_WHITE_SPACE = ["\x1c", "\x1f", "\u180e", "\u200b", "\u200d", "\u2060", "\ufeff", "\u2581"]

DIGITS = ["0123456789", "٠١٢٣٤٥٦٧٨٩", "०१२३४५६७८९", "０１２３４５６７８９", "²³½Ⅷ①৪", "𝟘𝟙𝟚𝟛𝟜𝟝𝟞𝟟𝟠𝟡"]
APOSTROPHES = ["'", "\u2019", "\u2018", "`", "\u02bc", "''"]
SUFFIXES = "s t re ve m ll d S T RE Ve M Ll LL D re's em clock n't 've \u017f x".split()
PUNCTUATION = string.punctuation + "¡¿«»“”‘’…–—•·§¶†‡。、，！？；：「」『』（）۔،؟।॥։‥‹›"
COMBINING = "\u0300\u0301\u0308\u0323\u0327\u05b0\u064b\u093c\u0e31\u20dd\u3099\ufe0f\U0001d165"

# Different kinds of malformed UTF-8. None decodes above U+10FFFF, which would abort the reference.
BROKEN = [
    b"\x80", b"\xbf\xbf", b"\xc3", b"\xc3(", b"\xe2\x82", b"\xe2(\xa1", b"\xe2\x82(", b"\xf0\x9f",
    b"\xf0\x9f\x98", b"\xf0(\x8c\xbc", b"\xc0\x80", b"\xc1\x81", b"\xc1\xbf", b"\xe0\x80\xaf",
    b"\xe0\x9f\xbf", b"\xf0\x80\x80\xaf", b"\xf0\x8f\xbf\xbf", b"\xed\xa0\x80", b"\xed\xbf\xbf",
    b"\xed\xa0\xbd\xed\xb8\x80", b"\xf8", b"\xf8\x88\x80\x80\x80", b"\xfc", b"\xfe", b"\xff",
    b"\xfe\xff", b"\xff\xfe", b"\xf4\x8f\xbf", b"\xef\xbf\xbf", b"\xef\xb7\x90", b"\xe1\xa0\xc3",
]  # fmt: skip

# Small alphabets whose short strings reach most branches of most pre-tokenizers.
ALPHABETS = [
    " \n\r\ta1.'s",
    "  \n\nx",
    "'sStTrRveElLdDmM ",
    "0123456789 a",
    "1٣ ,.xX",
    "aA中ーé\u0301 '",
    "ßſKİıǅ a",
    "가ㄱあア漢ก\u0e31 ",
    "\u00a0\u2003\u3000 \n.a",
    "$+<=>^~|`!?",
    "IMG AZ<sentinel:0>",
    "ACGTNacgt<dna></dna> ",
    "\u2581 a\n<0A>x",
    "'\u017f\u200c\u200d\u0301a 1!\n",
    "<|plamo:x> a\uee00",
    "/\\\r\n .a",
    "a\x00 \x7f\x80b",
]


@cache
def _category_members() -> dict[str, list[int]]:
    """Returns code points by general category, without surrogates, which are in BROKEN."""
    members: dict[str, list[int]] = {}
    for c in range(0x110000):
        if not 0xD800 <= c < 0xE000:
            members.setdefault(unicodedata.category(chr(c)), []).append(c)
    return members


@cache
def _documents(corpus: Path | None) -> list[str]:
    documents = list(pydoc_data.topics.topics.values())
    for module in ("argparse", "random", "html.entities"):
        __import__(module)
        source = Path(sys.modules[module].__file__ or "")
        documents.append(source.read_text(encoding="utf-8"))
    if corpus is not None:
        files = sorted(path for path in corpus.rglob("*") if path.is_file())
        documents += [path.read_bytes().decode("utf-8", "surrogateescape") for path in files]
    return [document for document in documents if document]


class _Maker:
    """Generates texts. Each method generates one kind of difficult text."""

    def __init__(
        self,
        seed: int,
        vocab_words: Sequence[bytes],
        special_texts: Sequence[bytes],
        corpus: Path | None,
    ) -> None:
        self.random = random.Random(seed)
        self.words = vocab_words or [b"word", b" the", b"ing"]
        self.special = special_texts or [b"<s>", b"</s>", b"<|endoftext|>"]
        self.documents = _documents(corpus)
        self.kinds: list[tuple[int, Callable[[], bytes]]] = [
            (14, self.prose),
            (10, self.document),
            (14, self.vocabulary),
            (8, self.code_points),
            (8, self.white_space),
            (6, self.digits),
            (7, self.contractions),
            (6, self.punctuation),
            (12, self.specials),
            (6, self.broken),
            (2, self.long_word),
            (4, self.code),
            (4, self.emoji),
            (3, self.combining),
            (5, self.mixed_scripts),
            (12, self.small_alphabet),
        ]

    def some(self, most: int) -> int:
        """Returns a random count of at most `most`, usually small."""
        return self.random.randint(1, self.random.choice((1, 3, 3, 8, 8, most)))

    def prose(self) -> bytes:
        lines = self.random.choices(PROSE, k=self.some(4))
        text = self.random.choice((" ", "\n", "\n\n", "  ", "\r\n", "")).join(lines)
        start = self.random.randrange(len(text))
        return text[start : start + self.some(300)].encode()

    def document(self) -> bytes:
        text = self.random.choice(self.documents)
        start = self.random.randrange(len(text))
        return text[start : start + self.some(1500)].encode("utf-8", "surrogateescape")

    def vocabulary(self) -> bytes:
        glue = self.random.choice((b"", b"", b" ", b" ", b"  ", b"\n", b"'", b"\t"))
        words = self.random.choices(self.words, k=self.some(60))
        cases = (bytes, bytes, bytes.upper, bytes.lower, bytes.title)
        return glue.join(self.random.choice(cases)(word) for word in words)

    def code_point(self) -> str:
        members = _category_members()
        choice = self.random.random()
        if choice < 0.6:
            # First choose a category, so that small ones are as likely as Co.
            return chr(self.random.choice(members[self.random.choice(sorted(members))]))
        c = self.random.randrange(0x10000 if choice < 0.9 else 0x110000)
        return chr(c) if not 0xD800 <= c < 0xE000 else "\ufffd"

    def code_points(self) -> bytes:
        return "".join(self.code_point() for _ in range(self.some(80))).encode()

    def white_space(self) -> bytes:
        pools = (" ", " ", " \n", "\r\n", "\n", "\t ", " \t\r\n", WHITE_SPACE, NEAR_WHITE_SPACE)
        parts = []
        for _ in range(self.some(12)):
            parts.append("".join(self.random.choices(self.random.choice(pools), k=self.some(40))))
            if self.random.random() < 0.7:
                parts.append(self.random.choice(("a", "Word", ".", "1", "漢", "é", "'s", "\u0301")))
        return "".join(parts).encode()

    def digits(self) -> bytes:
        parts = []
        for _ in range(self.some(8)):
            pool = self.random.choice((DIGITS[0], DIGITS[0], *DIGITS, "".join(DIGITS)))
            parts.append("".join(self.random.choices(pool, k=self.some(40))))
            parts.append(self.random.choice(("", " ", ",", ".", "a", " x", "\n", "-", "%", "中")))
        return "".join(parts).encode()

    def contractions(self) -> bytes:
        parts = []
        for _ in range(self.some(10)):
            parts.append(self.random.choice(("", " ", "I", "don", "WE", " they", "é", "1", "中")))
            parts.append(self.random.choice(APOSTROPHES))
            parts.append(self.random.choice(SUFFIXES))
        return "".join(parts).encode()

    def punctuation(self) -> bytes:
        parts = []
        for _ in range(self.some(8)):
            pool = self.random.choice((PUNCTUATION, PUNCTUATION[:32], ".", "-=", "!?", "$+<=>^~|`"))
            parts.append("".join(self.random.choices(pool, k=self.some(30))))
            parts.append(self.random.choice(("", " ", "  ", "\n", "\r\n", "a", " b", "3", "/\n")))
        return "".join(parts).encode()

    def specials(self) -> bytes:
        parts = []
        for _ in range(self.some(10)):
            text = self.random.choice(self.special)
            how = self.random.random()
            if how < 0.1:  # truncate the text, or let it overlap with itself
                cut = self.random.randrange(len(text) + 1)
                text = self.random.choice((text[:cut], text[cut:], text + text[cut:]))
            elif how < 0.2:
                text = self.random.choice((text.upper(), text.swapcase(), text * 2))
            parts.append(text)
            around = (b"", b"", b" ", b"  ", b"\n", b"\t \n", b"a", b" a", b"x \r\n", b"\xc2\xa0")
            parts.append(self.random.choice(around))
            if self.random.random() < 0.3:
                parts.append(self.random.choice((self.prose, self.vocabulary))()[:60])
        return b"".join(parts)

    def broken(self) -> bytes:
        parts = []
        for _ in range(self.some(10)):
            parts.append(self.random.choice(BROKEN))
            parts.append(self.random.choice((b"", b"", b"a", b" ", b"\n", b"\xc3\xa9", b"1", b".")))
        return b"".join(parts)

    def long_word(self) -> bytes:
        pools = ("a", "ab", string.ascii_lowercase, "漢字仮名", "абв", "한국어", "A", "_", ".", " ")
        pool = self.random.choice(pools)
        return "".join(self.random.choices(pool, k=self.random.choice((100, 300, 1000)))).encode()

    def code(self) -> bytes:
        text = "".join(self.random.choices(CODE, k=self.some(5)))
        start = self.random.randrange(len(text) // 2)
        return text[start : start + self.some(600)].encode()

    def emoji(self) -> bytes:
        parts = self.random.choices([*EMOJI, " ", "a", "\u200d", "\ufe0f"], k=self.some(20))
        return "".join(parts).encode()

    def combining(self) -> bytes:
        parts = []
        for _ in range(self.some(15)):
            parts.append(self.random.choice("aeoAÅéñกा가 \u00a01.ё"))
            parts.append("".join(self.random.choices(COMBINING, k=self.random.randint(0, 3))))
        return "".join(parts).encode()

    def mixed_scripts(self) -> bytes:
        parts = []
        for _ in range(self.some(15)):
            line = self.random.choice(PROSE)
            start = self.random.randrange(len(line))
            parts.append(line[start : start + self.some(12)])
        return "".join(parts).encode()

    def small_alphabet(self) -> bytes:
        alphabet = self.random.choice(ALPHABETS)
        return "".join(self.random.choices(alphabet, k=self.some(60))).encode()

    def text(self) -> bytes:
        weights = [weight for weight, _ in self.kinds]
        makers = [maker for _, maker in self.kinds]
        # About half of the texts are of one kind; the others combine several.
        n = self.random.choice((1, 1, 1, 1, 1, 2, 2, 3, 6, 25))
        text = b"".join(maker() for maker in self.random.choices(makers, weights, k=n))
        if self.random.random() < 0.02:
            text = text.replace(b" ", b"\x00", 1)
        return defuse(text[:MAX_BYTES])


def defuse(text: bytes) -> bytes:
    """Replaces the lead bytes of sequences that decode above U+10FFFF, because such sequences abort
    the reference."""
    cut = bytearray(text)
    for i in range(len(cut) - 1):
        if 0xF5 <= cut[i] <= 0xF7 or (cut[i] == 0xF4 and 0x90 <= cut[i + 1] <= 0xBF):
            cut[i] = 0xEE
    return bytes(cut)


def texts(
    seed: int,
    n: int,
    vocab_words: Sequence[bytes],
    special_texts: Sequence[bytes],
    corpus: Path | None = None,
) -> Iterator[bytes]:
    """Yields `n` texts, starting with a few fixed ones such as the empty text.

    Args:
        vocab_words: pieces of tokens to join.
        special_texts: the texts of control and user-defined tokens.
        corpus: a folder of files, of which slices are used.
    """
    maker = _Maker(seed, vocab_words, special_texts, corpus)
    fixed = [b"", b" ", b"\n", b"  ", b"\x00", b"a", b" a", b"Hello, world!"]
    for i in range(n):
        yield fixed[i] if i < len(fixed) else maker.text()
