"""Texts of 1 MB that are one word for most pre-tokenizers, as people have them."""

from __future__ import annotations

import base64
import json
import random

from tests.bench.corpora import MB, code, cut, prose

_THAI = "กขคงจฉชซญฎฏฐณดตถทธนบปผฝพฟภมยรลวศษสหอฮะาำิีึืุูเแโใไ่้๊๋์"
_EMOJI = "😀😁😂🤣😃😄😅😆😉😊😋😎😍😘🥰🤔🙄😏😣😥👍👎👏🙏💪🎉✨🔥❤️🚀"


def texts() -> dict[str, str]:
    chooser = random.Random(1)

    def letters(alphabet: str, n: int = MB) -> str:
        size = len(alphabet.encode()) / len(alphabet)
        return "".join(chooser.choices(alphabet, k=int(n / size)))

    data = chooser.randbytes(MB)
    return {
        "DNA": letters("ACGT"),
        "proteins": letters("ACDEFGHIKLMNPQRSTVWY"),
        "random letters": letters("abcdefghijklmnopqrstuvwxyz"),
        "base64": base64.b64encode(data)[:MB].decode(),
        "hexadecimal": data.hex()[:MB],
        "minified code": "".join(code().head(2 * MB).split())[:MB],
        "digits": letters("0123456789"),
        "one letter": "a" * MB,
        "spaces": " " * MB,
        "newlines": "\n" * MB,
        "Han": "".join(chr(0x4E00 + chooser.randrange(0x1000)) for _ in range(MB // 3)),
        "Thai": letters(_THAI),
        "emoji": letters(_EMOJI),
        "a JSON string": json.dumps(cut(prose().text, MB, 1)[0]),
        "rules of 10 kB": f"{'=' * 10_000}\n{'-' * 10_000}\n" * (MB // 20_002),
    }
