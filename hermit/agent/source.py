"""The code of an agent's or a judge's file, compiled once by the host and run by every worker.

What a run locked is what its workers run, also when the file is edited meanwhile; and to compile a judge costs as much
as to score an attempt. The host only compiles: it never runs the code.
"""

from __future__ import annotations

import marshal
from _frozen_importlib_external import MAGIC_NUMBER  # `importlib.util`, which shares it, imports ten modules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType


def compiled(path: str) -> tuple[CodeType, bytes]:
    """The code of a file, and the same as bytes for a worker.

    Raises:
        OSError: The file cannot be read.
        SyntaxError: It is not Python.
        ValueError: It holds a NUL byte.
    """
    with open(path, "rb") as file:
        # Optimised code would leave out the assertions a judge may rest on.
        code = compile(file.read(), path, "exec", dont_inherit=True, optimize=0)
    return code, MAGIC_NUMBER + marshal.dumps(code)


def loaded(data: bytes, path: str) -> CodeType:
    """The code from its bytes; from the file itself where another version of Python made them."""
    if data[: len(MAGIC_NUMBER)] == MAGIC_NUMBER:
        code: CodeType = marshal.loads(data[len(MAGIC_NUMBER) :])  # noqa: S302 - the host made it
        return code
    return compiled(path)[0]
