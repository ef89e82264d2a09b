"""Sends requests that schemathesis generates from /openapi.json, and compares the answers with it.

    python -m tests.server.schemas                        # extra: test-schemas
    python -m tests.server.schemas --max-examples 1000 --seed 2

Further arguments go to `schemathesis run`. The exit status is 1 if an answer has a status, a type,
a header or a body that the document doesn't describe, or is an internal error. Other checks of
schemathesis don't fit, because the server's answers are llama-server's: it refuses some requests
with status 500, unknown methods with 404, ignores wrong types of some fields, and requires more of
others than a schema can say.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import warnings

import ggtok
from tests.server.running import running
from tests.support.vocabularies import FIXTURES

CHECKS = (
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "no_internal_error",
)
MODELS = {"m": FIXTURES / "chat.gguf"}


def main(arguments: list[str]) -> int:
    program = shutil.which("schemathesis")
    if program is None:
        print("schemathesis isn't installed (extra: test-schemas)", file=sys.stderr)
        return 2
    warnings.simplefilter("ignore", ggtok.VocabWarning)
    environment = {**os.environ, "SCHEMATHESIS_HOOKS": "tests.server.schema_checks"}
    with running(MODELS) as url:
        command = [program, "run", f"{url}/openapi.json", "--checks", ",".join(CHECKS)]
        return subprocess.run([*command, *arguments], env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
