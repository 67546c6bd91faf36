"""What an agent and a judge hand back, as JSON and back again: nothing that crosses a sandbox's wall is trusted.

Every worker imports this, so it imports little: ``dataclasses`` alone would double what a judge pays to start.
"""

from __future__ import annotations

import json
import math

from hermit.domain.trial import JudgeResult, RunOutput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NUMBERS = ("cost_usd", "wall_s", "api_speed")
SHAPES: dict[str, tuple[type, ...]] = {"log": (str,), "messages": (list,), "tokens": (dict,), "extra": (dict,)}


class WrongResult(Exception):
    """A callable returned something else than it should; the message says what."""


def dump(document: Any) -> bytes:
    """JSON in ASCII on one line.

    Raises:
        TypeError: A value has no JSON form.
        ValueError: A number is not finite, or the value holds itself or is nested too deep.
    """
    try:
        return json.dumps(document, allow_nan=False, separators=(",", ":")).encode("ascii")
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def load(data: bytes) -> Any:
    """The value of a JSON text that somebody else wrote.

    Raises:
        ValueError: It is not JSON, holds a number that is not finite, or is nested too deep.
    """
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def run_output(document: Any) -> RunOutput:
    """An agent's output from its JSON form.

    Raises:
        TypeError: A field is missing its type, or is not one of :class:`RunOutput`.
    """
    if not isinstance(document, dict):
        raise TypeError(f"an output is an object, not {type(document).__name__}")
    unknown = set(document) - set(vars(RunOutput()))
    if unknown:
        raise TypeError(f"RunOutput has no field {min(unknown)!r}")
    for name in NUMBERS:
        value = document.get(name)
        if value is not None and not _is_finite(value):
            raise TypeError(f"RunOutput.{name} must be a finite number or None, not {value!r:.80}")
    for name, kinds in SHAPES.items():
        if name in document and not isinstance(document[name], kinds):
            raise TypeError(f"RunOutput.{name} must be a {kinds[0].__name__}, not {type(document[name]).__name__}")
    return RunOutput(**document)


def judge_result(value: Any) -> JudgeResult:
    """What a judge returned, whichever of its three forms it has: a result, a mapping with ``score``, a number.

    Raises:
        TypeError: It is none of the three, or a part has the wrong type.
        ValueError: The score is not finite.
    """
    if isinstance(value, JudgeResult):
        value = {**value.extra, "score": value.score, "feedback": value.feedback}
    if not isinstance(value, dict):
        value = {"score": value}
    extra = dict(value)
    score, feedback = extra.pop("score", None), extra.pop("feedback", "")
    if isinstance(extra.get("extra"), dict):
        extra = {**extra.pop("extra"), **extra}
    if not isinstance(score, (int, float)):
        raise TypeError(f"a score must be a number, not {type(score).__name__}")
    if not math.isfinite(score):
        raise ValueError(f"a score must be finite, not {score}")
    if not isinstance(feedback, str):
        raise TypeError(f"feedback must be text, not {type(feedback).__name__}")
    return JudgeResult(score=float(score), feedback=feedback, extra=extra)


def _is_finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")
