"""Which interpreter, with which environment, is shown; on trees made up by the test."""

from __future__ import annotations

import os

import pytest

from hermit.bwrap import python
from hermit.bwrap.argv import Empty, Show
from hermit.domain.bind import Bind
from hermit.domain.python import Python


def shown(value, *, framework=False):
    return [
        operation.bind.target
        for operation in python.operations(value, framework=framework)
        if isinstance(operation, Show)
    ]


def covered(value, *, framework=False):
    return [
        operation.path for operation in python.operations(value, framework=framework) if isinstance(operation, Empty)
    ]


@pytest.fixture
def venv(tmp_path):
    """A virtual environment on a base installation, with an editable package elsewhere."""
    base, env, package = tmp_path / "base", tmp_path / "env", tmp_path / "checkout" / "hermit"
    for directory in (base / "bin", env / "bin", env / "lib/python3.11/site-packages", package):
        directory.mkdir(parents=True)
    (base / "bin" / "python3.11").touch()
    (env / "bin" / "python").symlink_to(base / "bin" / "python3.11")
    return Python(
        executable=str(env / "bin" / "python"),
        prefix=str(env),
        base_prefix=str(base),
        sites=(str(env / "lib/python3.11/site-packages"),),
        package=str(package),
    )


def changed(value, **fields):
    return Python(**{**vars(value), **fields})


def test_a_virtual_environment_is_shown_with_the_installation_it_stands_on(venv):
    assert shown(venv) == sorted([venv.prefix, venv.base_prefix])


def test_everything_of_the_interpreter_is_shown_read_only_and_at_its_own_place(venv):
    for operation in python.operations(venv, framework=True):
        assert isinstance(operation, Show)
        assert operation.bind == Bind(operation.bind.source, operation.bind.source)


def test_an_interpreter_of_the_system_needs_nothing_that_the_system_does_not_show(venv):
    system = changed(
        venv, executable="/usr/bin/python3", prefix="/usr", base_prefix="/usr", sites=("/usr/lib/python3/x",)
    )
    assert shown(system) == []


def test_an_environment_below_usr_is_shown_by_the_system(venv):
    below = changed(venv, prefix="/usr/local/env", base_prefix="/usr", executable="/usr/local/env/bin/python")
    assert shown(below) == []


def test_an_environment_on_the_interpreter_of_the_system_is_shown_alone(venv):
    venv_python = os.path.join(venv.prefix, "bin", "python3")
    os.symlink("/usr/bin/env", venv_python)
    assert shown(changed(venv, base_prefix="/usr", executable=venv_python)) == [venv.prefix]


def test_an_interpreter_that_lies_in_none_of_its_directories_is_shown_as_a_file(venv):
    apart = changed(venv, base_prefix="/usr")
    assert shown(apart) == sorted([venv.prefix, os.path.realpath(venv.executable)])


def test_the_site_directories_of_other_interpreters_are_covered(venv):
    others = ("/usr/lib/python3/dist-packages", venv.base_prefix + "/lib/python3.11/site-packages")
    assert covered(changed(venv, others=others)) == list(others)


@pytest.mark.parametrize("framework", [False, True])
def test_an_editable_package_is_shown_only_when_the_framework_is(venv, framework):
    assert (venv.package in shown(venv, framework=framework)) is framework
    assert covered(venv, framework=framework) == []


@pytest.mark.parametrize("framework", [False, True])
def test_an_installed_package_is_covered_unless_the_framework_is_shown(venv, framework):
    installed = changed(venv, package=venv.sites[0] + "/hermit")
    assert (installed.package in covered(installed, framework=framework)) is not framework
    assert installed.package not in shown(installed, framework=framework)


def test_a_checkout_beside_the_package_is_never_shown(venv):
    checkout = os.path.dirname(venv.package)
    assert not any(path == checkout for path in shown(venv, framework=True))


def test_the_programs_of_the_environment_come_first_inside(venv):
    assert python.path_inside(venv).split(":")[0] == os.path.dirname(venv.executable)


def test_another_installation_is_covered_where_it_holds_anything_and_the_environments_own_never(tmp_path, monkeypatch):
    base = tmp_path / "base"
    full, empty = base / "lib/python3.11/site-packages", base / "lib/python3.12/site-packages"
    own = tmp_path / "own" / "dist-packages"
    for directory in (full, empty, own):
        directory.mkdir(parents=True)
    (full / "module.py").touch()
    (own / "module.py").touch()
    monkeypatch.setattr(python, "SYSTEM_SITES", (str(tmp_path / "o*" / "dist-packages"),))
    assert python._other_sites(str(base), {str(own)}) == (str(full),)
    assert python._other_sites(str(base), set()) == tuple(sorted((str(full), str(own))))


def test_a_name_with_a_pattern_in_it_is_taken_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(python, "SYSTEM_SITES", ())
    site = tmp_path / "b[a]se" / "lib/python3.11/site-packages"
    site.mkdir(parents=True)
    (site / "module.py").touch()
    assert python._other_sites(str(tmp_path / "b[a]se"), set()) == (str(site),)


def test_the_interpreter_that_runs_this_has_its_own_package_and_sites():
    current = python.current()
    assert os.path.isfile(os.path.join(current.package, "errors.py"))
    assert os.path.isdir(os.path.join(current.package, "inside"))
    assert current.sites
