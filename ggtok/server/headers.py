"""Which headers a proxy passes on."""

from __future__ import annotations

from ggtok.server.refusals import Refusal

# Headers for a single connection (RFC 9110 7.6.1), besides the ones listed in "Connection".
_HOP = {
    *(b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"te"),
    *(b"proxy-connection", b"trailer", b"transfer-encoding", b"upgrade"),
}
KEYS = (b"authorization", b"x-api-key")

Headers = list[tuple[bytes, bytes]]


def has_body(headers: Headers) -> bool:
    """Whether the request has a body. Raises Refusal for a transfer encoding other than chunked."""
    for name, value in headers:
        if name == b"transfer-encoding" and value.lower() != b"chunked":
            raise Refusal("the transfer encoding of a body must be chunked", status=501)
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value != b"0")
        for name, value in headers
    )


def forward_headers(headers: Headers, own: set[bytes]) -> Headers:
    """Returns the headers to pass on: all except `own` and those for a single connection."""
    listed = {
        part.strip().lower()
        for name, value in headers
        if name.lower() == b"connection"
        for part in value.split(b",")
    }
    dropped = _HOP | own | listed
    return [
        (name, value)
        for name, value in headers
        if name.lower() not in dropped and not name.lower().startswith(b"access-control-")
    ]
