"""The code that every start gets."""

from __future__ import annotations

import marshal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import hermit
from hermit import bundle
from hermit.bwrap import python as pythons

PACKAGE = Path(hermit.__file__).parent


@pytest.fixture(scope="module")
def python():
    return pythons.current()


def unpacked(python, orders, *, worker):
    return marshal.loads(bundle.packed(python, orders, worker=worker))  # noqa: S302 - it was written just now


def carried(python, *, worker="hermit.agent.worker:run_agent"):
    return unpacked(python, {}, worker=worker)[1]


def test_every_module_of_the_relay_comes_along():
    assert set(bundle.RELAY) == {path.stem for path in (PACKAGE / "inside").glob("*.py")} - {"__main__"}


@pytest.mark.parametrize(
    ("worker", "comes"), [("hermit.agent.worker", bundle.WORKER), ("hermit.handoff.archive", bundle.ARCHIVER)]
)
def test_what_a_worker_imports_of_hermit_comes_along_and_nothing_else(worker, comes, python):
    program = f"import sys, {worker}; print(*sorted(name for name in sys.modules if name.startswith('hermit')))"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.split() == sorted(comes)
    known = {name for name in carried(python, worker=f"{worker}:any") if name.startswith("hermit")}
    assert known == set(comes)


def test_what_a_method_may_import_of_hermit_comes_along_and_needs_nothing_else(python):
    names = ", ".join(bundle.EVOLVER)
    program = f"import sys, {names}; print(*sorted(name for name in sys.modules if name.startswith('hermit')))"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.split() == sorted(bundle.EVOLVER)
    known = {name for name in carried(python, worker="hermit.evolver.worker:any") if name.startswith("hermit")}
    assert known == set(bundle.EVOLVER)


def test_a_program_gets_nothing_of_hermit_but_the_relay(python):
    names = set(carried(python, worker=""))
    assert names <= {*bundle.RELAY, *bundle.STANDARD}
    assert names >= set(bundle.RELAY)


def test_a_module_is_told_where_its_file_is(python):
    known = carried(python)
    assert known["hermit.agent"][:2] == (str(PACKAGE / "agent" / "__init__.py"), "package")
    assert known["hermit.agent.worker"][:2] == (str(PACKAGE / "agent" / "worker.py"), "module")
    assert all(Path(file).exists() for file, _, _ in known.values())


def test_an_interpreter_with_another_standard_library_finds_that_of_its_own(python):
    own = carried(replace(python, standard=("/opt/other/lib",)))
    assert not set(own) & {*bundle.STANDARD, *bundle.STANDARD_WORKER}


def test_the_orders_come_along_as_they_are(python):
    assert unpacked(python, {"argv": ["\udcff"]}, worker="")[2]["argv"] == ["\udcff"]


def test_a_package_that_is_not_there_is_an_error_of_the_host(python):
    with pytest.raises(FileNotFoundError):
        bundle.packed(replace(python, package="/no/package"), {}, worker="")
