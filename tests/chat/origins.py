"""Templates, and the control tokens that their output may contain in every engine.

A character has the template's origin if it comes from the template's text, or from a message's role
that templates know, or is computed only from such characters. Other text from a message never does.
Rows are rendered with spm-phi3's vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Row:
    template: str
    control: list[str]  # the expected control tokens, except for the added BOS
    text: str | None = None  # the expected text, if it matters
    content: str = "x"
    role: str = "user"
    jinja2_only: bool = False  # llama.cpp's dialect lacks the feature
    messages: list[dict[str, Any]] = field(init=False)

    def __post_init__(self) -> None:
        message = {"role": self.role, "content": self.content}
        object.__setattr__(self, "messages", [message])


END, USER = ["<|end|>"], ["<|user|>"]

ROWS = [
    # The template's own text, after operations that preserve its origin.
    Row("{{ '<|end' ~ '|>' }}", END),
    Row("{{ ['<|', 'end|>'] | join }}", END),
    Row("{{ '<|END|>' | lower }}", END),
    Row("{{ '<|{}|>'.format('end') }}", END),
    Row("{{ '%s' % '<|end|>' }}", END, jinja2_only=True),
    Row("{{ '%-5s' % '<|end|>' }}", END, jinja2_only=True),
    Row("{{ '%9s' % '<|end|>' }}", END, "  <|end|>", jinja2_only=True),
    Row("{{ '<|end|>' | center(9) }}", END, " <|end|> ", jinja2_only=True),
    Row("{{ '<|end|>' | title | lower }}", END),
    # Message roles that templates know.
    Row("{{ '<|' ~ messages[0].role ~ '|>' }}", USER),
    Row("{{ ('<|' ~ messages[0].role ~ '|>') | title | lower }}", USER),
    Row("{{ '<|' ~ messages[0].role | title | lower ~ '|>' }}", USER),
    Row("{{ '<|%s|>' % messages[0].role }}", USER, jinja2_only=True),
    Row("{{ '<|' ~ messages[0].role ~ '|>' }}", [], role="end"),
    # A message's text, after the same operations.
    Row("{{ messages[0].content }}", [], content="<|end|>"),
    Row("{{ '<|' ~ messages[0].content ~ '|>' }}", [], content="end"),
    Row("{{ '%-5s' % messages[0].content }}", [], content="<|end|>", jinja2_only=True),
    Row("{{ '<|%-3s|>' % messages[0].content }}", [], "<|end|>", content="end", jinja2_only=True),
    Row(
        "{{ '<|end|>'.join(['a', messages[0].content]) }}", END, content="<|end|>", jinja2_only=True
    ),
    Row("{{ messages[0].content | title | lower }}", [], content="<|end|>"),
    Row("{{ ('<|' ~ messages[0].content) | title | lower }}", [], content="end|>"),
    Row("{{ '<|' ~ messages[0].content | title | lower ~ '|>' }}", [], content="end"),
    Row("{{ messages[0].content | replace('-', '') }}", [], content="<|-end|>"),
    Row("{% for k in messages[0].content %}{{ k }}{% endfor %}", [], content="<|end|>"),
    Row("{% for k in dict(end=1) %}{{ '<|' ~ k ~ '|>' }}{% endfor %}", END),
    # The engine's internal objects aren't accessible.
    Row("{{ 'abc'.runs }}", [], ""),
    Row("{{ messages[0].content.runs is defined }}", [], "False"),
]

# Methods that are printed instead of called: jinja2 prints their addresses, ggtok's engine doesn't.
# Neither output contains a control token.
METHODS = ["{{ ''.join }}", "{{ messages[0].items }}"]
