"""Answers as HTTP responses."""

from __future__ import annotations

from collections.abc import Callable

from starlette.responses import Response

from ggtok.errors import GGTokError
from ggtok.server import bodies
from ggtok.server.errors import ErrorBody, Refusal

JSON = "application/json; charset=utf-8"


class Reply(Response):
    """JSON with a status."""

    media_type = JSON

    @classmethod
    def of(cls, refusal: Refusal, errors: ErrorBody) -> Reply:
        return cls(bodies.dump((refusal.body or errors)(refusal)), refusal.status)


def reply(answer: Callable[[], object], errors: ErrorBody) -> Response:
    """The response to a request: the answer, which is JSON or a response itself, or why there is
    none."""
    try:
        made = answer()
        return made if isinstance(made, Response) else Reply(bodies.dump(made))
    except Refusal as e:
        return Reply.of(e, errors)
    except GGTokError as e:
        return Reply.of(Refusal(str(e)), errors)
