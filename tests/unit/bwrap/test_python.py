"""Packages beside the site directories on trees made up by the test, and real interpreters in real sandboxes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from hermit.bwrap import python
from hermit.bwrap.argv import Show
from hermit.bwrap.launch import Bubblewrap
from hermit.domain.bind import Bind
from hermit.domain.command import Command
from hermit.domain.sandbox import Sandbox

VERSION = "3.11"
SITE = f"lib/python{VERSION}/site-packages"
INTERPRETERS = ("/usr/bin/python3", sys.executable)
FACTS = """
import json, sys, sysconfig
paths = {kind: [sysconfig.get_path(name) for name in names]
         for kind, names in (("installed", ("purelib", "platlib")), ("standard", ("stdlib", "platstdlib")))}
print(json.dumps({"executable": sys.executable, "prefix": sys.prefix, "base_prefix": sys.base_prefix,
                  "sys_path": sys.path, "version": sysconfig.get_python_version(), **paths}))
"""
FINDER = """
MAPPING: dict[str, str] = {mapping!r}
NAMESPACES: dict[str, list[str]] = {namespaces!r}
raise SystemExit("this file must only be read")
"""
# What an editable install's finder does, in the fewest words.
RUNNING_FINDER = """
import importlib.util, os, sys
MAPPING: dict[str, str] = {mapping!r}
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        init = os.path.join(MAPPING.get(name, "/nowhere"), "__init__.py")
        return importlib.util.spec_from_file_location(name, init) if os.path.exists(init) else None
def install():
    sys.meta_path.append(Finder)
"""


def write(root, name, text=""):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


class Installed:
    """An interpreter with a site directory, and code elsewhere."""

    def __init__(self, root):
        self.root = root
        write(root, "base/bin/python")
        write(root, f"base/lib/python{VERSION}/os.py")
        write(root, f"base/{SITE}/normal/__init__.py")
        write(root, f"base/{SITE}/normal-1.0.dist-info/RECORD", "normal/__init__.py,,\n")

    def site(self, name, text=""):
        return write(self.root, f"base/{SITE}/{name}", text)

    def code(self, name, text=""):
        return write(self.root, f"code/{name}", text)

    def path(self, name):
        return str(self.root / "code" / name).rstrip("/")

    def roots(self, *names, path=()):
        base = str(self.root / "base")
        sys_path = [f"{base}/lib/python{VERSION}", f"{base}/{SITE}", *path]
        value = python.describe(
            executable=f"{base}/bin/python",
            prefix=base,
            base_prefix=base,
            sys_path=sys_path,
            version=VERSION,
            package="/nowhere/hermit",
        )
        return python.package_roots(names, python=value, sys_path=sys_path)


@pytest.fixture
def installed(tmp_path):
    return Installed(tmp_path)


def test_a_package_that_is_installed_as_usual_needs_nothing(installed):
    for found in installed.roots("normal", "Normal", "os"):
        assert (found.shown, found.search) == ((), ())


def test_a_package_on_the_path_is_shown_alone_and_its_directory_is_searched(installed):
    installed.code("bench/__init__.py")
    installed.code("tasks.jsonl")
    (found,) = installed.roots("bench", path=[installed.path("")])
    assert (found.shown, found.search) == ((installed.path("bench"),), (installed.path(""),))


@pytest.mark.parametrize("name", ["bench.py", f"bench.cpython-{sys.version_info[0]}{sys.version_info[1]}-x.so"])
def test_a_module_of_one_file_is_shown_as_that_file(installed, name, monkeypatch):
    monkeypatch.setattr(python, "SUFFIXES", (name.removeprefix("bench"),))
    installed.code(name)
    (found,) = installed.roots("bench", path=[installed.path("")])
    assert found.shown == (installed.path(name),)


@pytest.mark.parametrize("asked", ["bench", "my-bench", "My_Bench"])
def test_a_static_editable_install_is_found_by_the_name_of_its_package_and_of_its_distribution(installed, asked):
    installed.code("src/bench/__init__.py")
    installed.site("__editable__.my_bench-1.0.pth", installed.path("src") + "\n")
    installed.site("my_bench-1.0.dist-info/top_level.txt", "bench\n")
    (found,) = installed.roots(asked)
    assert (found.shown, found.search) == ((installed.path("src/bench"),), (installed.path("src"),))


def test_the_finder_of_an_editable_install_is_read_and_never_run(installed):
    installed.code("source/__init__.py")
    installed.code("solo.py")
    mapping = {"bench": installed.path("source"), "solo": installed.path("solo")}
    installed.site("__editable___bench_1_0_finder.py", FINDER.format(mapping=mapping, namespaces={}))
    installed.site("__editable__.bench-1.0.pth", "import __editable___bench_1_0_finder; raise SystemExit(1)\n")
    bench, solo = installed.roots("bench", "solo")
    assert (bench.shown, bench.search) == ((installed.path("source"),), ())
    assert (solo.shown, solo.search) == ((installed.path("solo.py"),), (installed.path(""),))


@pytest.mark.parametrize(
    "text", ["MAPPING = {", "MAPPING = open('x')", "MAPPING = [1]", "MAPPING: dict", "x = " + "(" * 999]
)
def test_a_finder_that_cannot_be_read_is_passed_over(installed, text):
    installed.site("__editable___bench_1_0_finder.py", text)
    assert installed.roots("normal")[0].shown == ()


def test_an_egg_link_leads_to_the_package_of_its_checkout(installed):
    installed.code("bench/__init__.py")
    installed.code("My_Bench.egg-info/top_level.txt", "bench\n")
    installed.site("My-Bench.egg-link", installed.path("") + "\n.\n")
    (found,) = installed.roots("my-bench")
    assert (found.shown, found.search) == ((installed.path("bench"),), (installed.path(""),))


def test_every_portion_of_a_namespace_package_is_shown(installed):
    installed.site("space/usual/__init__.py")
    installed.code("one/space/first/__init__.py")
    installed.code("two/space/second.py")
    (found,) = installed.roots("space", path=[installed.path("one"), installed.path("two")])
    assert found.shown == (installed.path("one/space"), installed.path("two/space"))
    assert found.search == (installed.path("one"), installed.path("two"))
    (part,) = installed.roots("space.first", path=[installed.path("one")])
    assert part.shown == (installed.path("one/space/first"),)


def test_the_namespaces_of_a_finder_are_shown_as_well(installed):
    installed.code("src/space/part/__init__.py")
    spaces = {"space": [installed.path("src/space")]}
    installed.site("__editable___space_1_0_finder.py", FINDER.format(mapping={}, namespaces=spaces))
    assert installed.roots("space")[0].shown == (installed.path("src/space"),)


def test_a_package_comes_before_a_directory_of_its_name(installed):
    installed.code("one/bench/data.csv")
    installed.code("two/bench/__init__.py")
    (found,) = installed.roots("bench", path=[installed.path("one"), installed.path("two")])
    assert found.shown == (installed.path("two/bench"),)


def test_what_a_finder_maps_comes_before_a_directory_of_its_name(installed):
    installed.code("one/bench/data.csv")
    installed.code("two/bench/__init__.py")
    mapping = {"bench": installed.path("two/bench"), "gone": installed.path("gone")}
    installed.site("__editable___bench_1_0_finder.py", FINDER.format(mapping=mapping, namespaces={}))
    assert installed.roots("bench", path=[installed.path("one")])[0].shown == (installed.path("two/bench"),)
    with pytest.raises(ValueError, match="'gone'"):
        installed.roots("gone")


def test_the_statements_and_comments_of_a_pth_file_lead_nowhere(installed):
    installed.code("bench/__init__.py")
    installed.site("x.pth", "# x/../../../../../code\nimport x/../../../../../code\n\n/nowhere\n")
    with pytest.raises(ValueError, match="'bench'"):
        installed.roots("bench")


def test_an_unknown_name_is_refused_with_the_nearest_that_exists(installed):
    installed.code("scoring/__init__.py")
    with pytest.raises(ValueError, match=r"'scorings'.*nearest is 'scoring'"):
        installed.roots("scorings", path=[installed.path("")])


def test_a_distribution_that_does_not_say_what_it_holds_asks_for_the_name_of_the_package(installed):
    installed.code("other/__init__.py")
    installed.site("bench.pth", installed.path("") + "\n")
    installed.site("my_bench-1.0.dist-info/RECORD", "bench.pth,,\n")
    with pytest.raises(ValueError, match="name the package"):
        installed.roots("my-bench")


def test_the_interpreter_that_runs_this_has_its_own_package_and_sites():
    current = python.current()
    assert os.path.isfile(os.path.join(current.package, "errors.py"))
    assert os.path.isdir(os.path.join(current.package, "inside"))
    assert current.sites
    for operation in python.operations(current, framework=True):
        if isinstance(operation, Show):
            assert operation.bind == Bind(operation.bind.source, operation.bind.source)


class Environment:
    """A real virtual environment, its packages, and code that is installed into it as editable."""

    def __init__(self, root, interpreter, *options):
        if not os.path.exists(interpreter):
            pytest.skip(f"{interpreter} does not exist on this machine")
        self.root = root
        self.prefix = str(root / "env")
        asked = [interpreter, "-m", "venv", "--without-pip", *options, self.prefix]
        made = subprocess.run(asked, capture_output=True, text=True, check=False)
        if made.returncode != 0:
            pytest.skip(f"{interpreter} makes no virtual environment: {made.stderr or made.stdout}")
        self.site = root / os.path.relpath(self.outside("import sysconfig; print(sysconfig.get_path('purelib'))"), root)
        write(self.site, "insite.py")

    def outside(self, code):
        names = (f"{self.prefix}/bin/{name}" for name in python.NAMES)
        program = [next(filter(os.path.exists, names)), "-c", code]
        environ = {"PATH": "/usr/bin:/bin"}
        ran = subprocess.run(program, capture_output=True, text=True, check=True, env=environ, cwd="/")
        return ran.stdout.strip()

    def described(self):
        facts = json.loads(self.outside(FACTS))
        return python.describe(**facts, package=python.current().package)

    def run(self, *argv, value=None, **declared):
        value = self.described() if value is None else value
        backend = Bubblewrap(shutil.which("bwrap"), "", value)
        outcome = backend.run(Sandbox(**declared), Command(argv=argv), environ={}, keep=lambda _: None)
        return outcome.shell_code, outcome.stdout.kept.decode() + outcome.stderr.kept.decode()

    def imports(self, *names, **declared):
        """Which of the modules can be imported inside; an empty directory in their place holds nothing."""
        code = (
            "import importlib, sys\n"
            "for name in sys.argv[1:]:\n"
            "    try:\n"
            "        print(name) if importlib.import_module(name).__file__ else None\n"
            "    except ImportError:\n"
            "        pass\n"
        )
        status, said = self.run("python3", "-c", code, *names, **declared)
        assert status == 0, said
        return said.split()


@pytest.fixture(params=INTERPRETERS)
def environment(request, tmp_path):
    return Environment(tmp_path, request.param)


@pytest.mark.bwrap
def test_inside_the_standard_library_and_the_packages_of_the_environment_import(environment):
    names = ["ssl", "sqlite3", "ctypes", "multiprocessing", "json", "insite"]
    there = [name for name in names if name == environment.outside(f"import {name}; print({name!r})")]
    assert environment.imports(*there) == there


@pytest.mark.bwrap
def test_inside_nothing_that_is_installed_beside_the_base_imports(environment):
    value = environment.described()
    modules = [
        name.removesuffix(".py")
        for path in value.others
        for name in os.listdir(path)
        if os.path.isfile(f"{path}/{name}/__init__.py") or name.endswith(".py")
    ]
    if not modules:
        pytest.skip("no other interpreter of this machine has a package")
    assert environment.imports(*modules, env=(("PYTHONPATH", ":".join(value.others)),)) == []


@pytest.mark.bwrap
@pytest.mark.parametrize("interpreter", INTERPRETERS)
def test_inside_a_package_of_the_base_imports_where_the_environment_takes_those(tmp_path, interpreter):
    environment = Environment(tmp_path, interpreter, "--system-site-packages")
    base = [site for site in environment.described().sites if site != str(environment.site)]
    found = environment.outside(f"import pkgutil; print(*[module.name for module in pkgutil.iter_modules({base})])")
    code = "import importlib.util, sys; print(*[name for name in sys.argv[1:] if importlib.util.find_spec(name)])"
    if not found:
        pytest.skip(f"{interpreter} has no package beside its standard library")
    assert environment.run("python3", "-c", code, *found.split()) == (0, found + "\n")


@pytest.mark.bwrap
def test_inside_an_editable_package_imports_when_it_is_named_and_not_otherwise(environment):
    for name in ("static", "found"):
        write(environment.root, f"{name}-checkout/{name}/__init__.py")
        write(environment.root, f"{name}-checkout/secret.py")
    write(environment.site, "static.pth", f"{environment.root}/static-checkout\n")
    mapping = {"found": f"{environment.root}/found-checkout/found"}
    write(environment.site, "__editable___found_finder.py", RUNNING_FINDER.format(mapping=mapping))
    write(environment.site, "found.pth", "import __editable___found_finder; __editable___found_finder.install()\n")
    names = ("static", "found", "insite", "secret")
    assert environment.outside("import static, found, insite, secret; print('all')") == "all"
    assert environment.imports(*names) == ["insite"]
    value = environment.described()
    sys_path = json.loads(environment.outside(FACTS))["sys_path"]
    packages = python.package_roots(["static", "found"], python=value, sys_path=sys_path)
    read = tuple(path for package in packages for path in package.shown)
    assert environment.imports(*names, read=read) == ["static", "found", "insite"]


@pytest.mark.bwrap
@pytest.mark.parametrize("lacking", ["", "python", "python3"])
def test_inside_a_script_for_env_runs_on_this_environment_under_either_name(environment, lacking):
    value = environment.described()
    if lacking:
        # The one that stays may have been a link to the one that goes.
        target = os.path.realpath(value.executable)
        for name in ("python", "python3"):
            os.unlink(f"{environment.prefix}/bin/{name}")
        os.symlink(target, f"{environment.prefix}/bin/{(set(python.NAMES) - {lacking}).pop()}")
        value = environment.described()
        assert value.aliases == (lacking,)
    for name in ("python", "python3"):
        script = write(
            environment.root, f"scripts/{name}", f"#!/usr/bin/env {name}\nimport insite, sys\nprint('ran')\n"
        )
        os.chmod(script, 0o700)
        assert environment.run(script, value=value, read=(script,)) == (0, "ran\n")


@pytest.mark.bwrap
@pytest.mark.parametrize("framework", [False, True])
def test_inside_the_framework_imports_exactly_when_it_is_shown(framework):
    current = python.current()
    code = "from hermit import Sandbox; print('there')"
    env = (("PYTHONPATH", os.path.dirname(current.package)),)
    backend = Bubblewrap(shutil.which("bwrap"), "", current)
    sandbox = Sandbox(framework=framework, env=env)
    outcome = backend.run(sandbox, Command(argv=("python3", "-c", code)), environ={}, keep=lambda _: None)
    assert (outcome.stdout.kept == b"there\n") is framework
    assert (b"ImportError" in outcome.stderr.kept or b"ModuleNotFoundError" in outcome.stderr.kept) is not framework


@pytest.mark.bwrap
def test_inside_there_is_no_other_environment_of_the_machine_to_read(environment):
    value = environment.described()
    code = "import os, sys; print([path for path in sys.argv[1:] if os.listdir(path)])"
    assert environment.run("python3", "-c", code, *value.others, value=value) == (0, "[]\n")
