"""Converts answers to HTTP responses."""

from __future__ import annotations

from collections.abc import Callable

from starlette.responses import Response

from ggtok.errors import GGTokError
from ggtok.server import bodies
from ggtok.server.refusals import ErrorBody, Refusal

MOST = 128 << 20  # the maximum size of an answer in bytes: half of connections.MOST_UNREAD
JSON = "application/json; charset=utf-8"


class Reply(Response):
    """A JSON response with a status."""

    media_type = JSON

    @classmethod
    def of(cls, refusal: Refusal, errors: ErrorBody) -> Reply:
        return cls(bodies.dump((refusal.body or errors)(refusal)), refusal.status)


def reply(answer: Callable[[], object], errors: ErrorBody) -> Response:
    """Returns the response to a request: the answer, which may be JSON or itself a response, or an
    error that says why there is no answer."""
    try:
        made = answer()
        if isinstance(made, Response):
            return made
        data = bodies.dump(made)
        if len(data) > MOST:
            raise Refusal(
                f"the answer has {len(data)} bytes, and may have at most {MOST}: send a part of "
                "the text",
                status=413,
            )
        return Reply(data)
    except Refusal as e:
        return Reply.of(e, errors)
    except GGTokError as e:
        return Reply.of(Refusal(str(e)), errors)
    except RecursionError:
        return Reply.of(Refusal("the body's values are nested too deeply"), errors)
