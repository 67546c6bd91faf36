"""What an agent and a judge hand back, as JSON and back again: nothing that crosses a sandbox's wall is trusted.

Every worker imports this, so it imports little. The standard library's ``json`` is a thin layer over ``_json``, but
brings regular expressions, which cost a worker more than its sandbox does: it is used here without that layer.
"""

from __future__ import annotations

import _json

from hermit.domain.trial import JudgeResult, RunOutput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_DEPTH = 200
MOST_FEEDBACK = 256 * 1024
MOST_NUMBER = 1e15  # sums of many of these are still exact enough, and finite
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
    write = _json.make_encoder(
        {}, _refuse_type, _json.encode_basestring_ascii, None, ":", ",", False, False, False
    )  # containers seen, other types, text, indent, separators, sorted, unknown keys left out, NaN allowed
    try:
        return "".join(write(document, 0)).encode("ascii")
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def load(data: bytes) -> Any:
    """The value of a JSON text that somebody else wrote.

    Raises:
        ValueError: It is not JSON, holds a number that is not finite, or is nested too deep.
    """
    text = data.decode("utf-8").strip(" \t\r\n")
    try:
        value, end = _json.make_scanner(_Scan)(text, 0)  # type: ignore[arg-type]  # its stub asks for what it returns
    except StopIteration:
        raise ValueError("there is no value") from None
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    if end != len(text):
        raise ValueError(f"there is more after the value, at character {end}")
    if text.count("[") + text.count("{") > MOST_DEPTH:
        _refuse_depth(value)
    return value


class _Scan:
    """How ``_json`` reads: strictly, into plain types."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_int = int

    @staticmethod
    def parse_float(digits: str) -> float:
        return _finite(digits)

    @staticmethod
    def parse_constant(name: str) -> Any:
        raise ValueError(f"{name} is not a number")


def _refuse_depth(value: Any) -> None:
    """What is read here is written again elsewhere, in deeper calls: it must not only just have fitted."""
    level = [value]
    for _ in range(MOST_DEPTH):
        inner = [item for item in level if isinstance(item, (dict, list))]
        if not inner:
            return
        level = [part for item in inner for part in (item.values() if isinstance(item, dict) else item)]
    raise ValueError(f"it is nested more than {MOST_DEPTH} deep")


def _refuse_type(value: Any) -> Any:
    raise TypeError(f"an object of type {type(value).__name__} has no JSON form")


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
        if value is not None and not _is_amount(value):
            raise TypeError(f"RunOutput.{name} must be a number from 0 to {MOST_NUMBER:g} or None, not {value!r:.80}")
    for name, kinds in SHAPES.items():
        if name in document and not isinstance(document[name], kinds):
            raise TypeError(f"RunOutput.{name} must be a {kinds[0].__name__}, not {type(document[name]).__name__}")
    return RunOutput(**document)


def judge_result(value: Any) -> JudgeResult:
    """What a judge returned, whichever of its three forms it has: a result, a mapping with ``score``, a number.

    Raises:
        TypeError: It is none of the three, or a part has the wrong type.
        ValueError: The score is not finite, or the feedback is too long.
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
    if not abs(score) <= MOST_NUMBER:
        raise ValueError(f"a score must be finite and at most {MOST_NUMBER:g}, not {score!r:.40}")
    if not isinstance(feedback, str):
        raise TypeError(f"feedback must be text, not {type(feedback).__name__}")
    if len(feedback) > MOST_FEEDBACK:
        raise ValueError(f"feedback may have {MOST_FEEDBACK} characters, not {len(feedback)}")
    return JudgeResult(score=float(score), feedback=feedback, extra=extra)


def _is_amount(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= MOST_NUMBER


def _finite(digits: str) -> float:
    number = float(digits)
    if number - number != 0:  # infinite
        raise ValueError(f"{digits:.20} is larger than any number")
    return number
