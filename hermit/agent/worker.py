"""The worker: runs one call of an agent, or of a judge, inside its sandbox and hands back what it returned.

One process for each call. The job comes in on a descriptor. The result leaves on another, once, as JSON; it closes on
exec and on fork, and the process is not dumpable, so no program the agent starts has it or can open it. Everything
the callable prints goes to the output streams and means nothing.

The worker runs in the relay's own interpreter, as ``python -I`` would: no variable of Python's is heeded, and neither
the working directory nor the user's site directory is on the path. What is handed over has to be imported quickly:
this module takes the standard library only, and little of it.
"""

from __future__ import annotations

import os
import sys

from hermit.agent import source
from hermit.domain import codec
from hermit.domain.trial import RunOutput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def run_agent(job_descriptor: int, result_descriptor: int) -> None:
    """Runs ``run(task, adapter)`` of the job's callable."""
    job = take(job_descriptor, result_descriptor)
    hand_back(result_descriptor, lambda: _agent_output(job))


def run_judge(job_descriptor: int, result_descriptor: int) -> None:
    """Runs ``score(task, output)`` of the job's callable."""
    job = take(job_descriptor, result_descriptor)
    hand_back(result_descriptor, lambda: _judge_result(job))


def run_tool(job_descriptor: int, result_descriptor: int) -> None:
    """Runs the job's callable, a tool or code of an adapter, with the one value it is given."""
    job = take(job_descriptor, result_descriptor)
    hand_back(result_descriptor, lambda: {"returned": callable_of(job["callable"], job["code"])(job["argument"])})


def take(job_descriptor: int, result_descriptor: int) -> dict[str, Any]:
    """The job: a line of JSON, then the code of the callable's file as the host compiled it."""
    os.set_inheritable(result_descriptor, False)
    os.register_at_fork(after_in_child=lambda: os.close(result_descriptor))
    with open(job_descriptor, "rb") as file:
        job: dict[str, Any] = codec.load(file.readline())
        job["code"] = file.read()
    return job


def _agent_output(job: dict[str, Any]) -> dict[str, Any]:
    from pathlib import Path  # noqa: PLC0415 - a judge does without it

    run = callable_of(job["callable"], job["code"])
    task, base = job["task"], Path(job["base"])
    adapter = Path(job["adapter"]) if job["adapter"] else None
    if isinstance(run, type):
        output = run(job["params"], base).run(task, adapter)
    else:
        code = getattr(run, "__code__", None)
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code else ()
        offered = {"params": job["params"], "base": base}
        output = run(task, adapter, **{name: value for name, value in offered.items() if name in names})
    if not isinstance(output, RunOutput):
        raise codec.WrongResult(f"run() returned {type(output).__name__}, not RunOutput")
    return dict(vars(output))


def _judge_result(job: dict[str, Any]) -> dict[str, Any]:
    score = callable_of(job["callable"], job["code"])
    value = score(job["task"], codec.run_output(job["output"]))
    try:
        return dict(vars(codec.judge_result(value)))
    except (TypeError, ValueError) as error:
        raise codec.WrongResult(f"score() returned something else: {error}") from None


def callable_of(name: str, code: bytes) -> Any:
    """``/path/file.py:Name`` or ``package.module:Name``."""
    where, _, attribute = name.rpartition(":")
    if where.endswith(".py"):
        sys.path.insert(0, os.path.dirname(where))
        module = type(sys)(os.path.basename(where)[: -len(".py")])
        module.__file__ = where
        sys.modules[module.__name__] = module
        exec(source.loaded(code, where), vars(module))  # noqa: S102 - to run this code is what a worker is for
    else:
        __import__(where)
        module = sys.modules[where]
    return getattr(module, attribute)


def hand_back(descriptor: int, work: Any) -> None:
    """Writes what ``work`` returns, or how it failed; the process goes on to its end either way."""
    try:
        value = work()
        try:
            said = codec.dump({"value": value})
        except (TypeError, ValueError) as error:
            raise codec.WrongResult(f"what it returned is not JSON: {error}") from None
    except codec.WrongResult as error:
        said = codec.dump({"failed": "result", "error": str(error)})
    except SystemExit as leaving:
        said = codec.dump({"failed": "exit", "error": f"it called sys.exit({leaving.code!r})"[:500]})
    except BaseException as error:  # noqa: BLE001 - whatever the callable raises is a fact about it
        said = codec.dump({"failed": "exception", **_described(error)})
    view = memoryview(said)
    while view:
        view = view[os.write(descriptor, view) :]
    os.close(descriptor)


def _described(error: BaseException) -> dict[str, str]:
    import traceback  # noqa: PLC0415 - only a failure pays for it

    try:
        text = "".join(traceback.format_exception(error))
        line = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
    except Exception:  # noqa: BLE001 - an exception whose own text fails is still an exception
        text, line = "", type(error).__name__
    return {"error": line[:2000], "trace": text[-8000:]}
