"""What is shown of an interpreter, on trees made up by the test: every way in which one is installed."""

from __future__ import annotations

import os

import pytest

from hermit.bwrap import python
from hermit.bwrap.argv import Empty, Link, Show

VERSION = "3.11"
SITE = f"lib/python{VERSION}/site-packages"


class Machine:
    """A machine below one directory, with a /usr of its own."""

    def __init__(self, root):
        self.root = root
        self.home = str(root / "home/ada")
        os.makedirs(self.home)
        self.file("usr/bin/env")

    def path(self, name):
        return str(self.root / name)

    def file(self, name, text=""):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return str(path)

    def link(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(text)
        return str(path)

    def installation(self, name, *, version=VERSION):
        """A base installation with a package in its site directory; returns its prefix."""
        self.file(f"{name}/bin/python{version}")
        self.link(f"{name}/bin/python3", f"python{version}")
        self.link(f"{name}/bin/python", "python3")
        self.file(f"{name}/lib/python{version}/os.py")
        self.file(f"{name}/lib/libpython{version}.so")
        self.file(f"{name}/lib/python{version}/site-packages/inbase/__init__.py")
        return self.path(name)

    def venv(self, name, program, *, system_site=False, names=("python", "python3")):
        """A virtual environment with a package in its site directory; returns its prefix."""
        self.file(f"{name}/pyvenv.cfg", f"include-system-site-packages = {str(system_site).lower()}\n")
        for link in names:
            self.link(f"{name}/bin/{link}", program)
        self.file(f"{name}/{SITE}/inenv/__init__.py")
        return self.path(name)

    def describe(self, prefix, base_prefix=None, *, executable=None, sys_path=None, **facts):
        base_prefix = base_prefix or prefix
        usual = [f"{base_prefix}/lib/python{VERSION}", f"{prefix}/{SITE}"]
        return python.describe(
            executable=executable or f"{prefix}/bin/python",
            prefix=prefix,
            base_prefix=base_prefix,
            sys_path=usual if sys_path is None else sys_path,
            version=VERSION,
            package=facts.pop("package", self.path("checkout/hermit")),
            home=self.home,
            **facts,
        )


@pytest.fixture
def machine(tmp_path, monkeypatch):
    usr = str(tmp_path / "usr")
    monkeypatch.setattr(python, "SYSTEM", usr)
    monkeypatch.setattr(python, "BY_SYSTEM", (usr,))
    return Machine(tmp_path)


def sees(value, path, *, framework=False, packages=()):
    """Whether a path of the host exists inside: the deepest operation above it decides, as the mounts do."""
    deepest, exists = (len(python.SYSTEM) if path.startswith(python.SYSTEM + "/") else -1), False
    exists = deepest > 0
    for operation in python.operations(value, framework=framework, packages=packages):
        place = operation.bind.target if isinstance(operation, Show) else operation.path
        if (path == place or path.startswith(place + "/")) and len(place) > deepest:
            deepest, exists = len(place), not isinstance(operation, Empty)
    return exists


def test_a_virtual_environment_shows_itself_and_its_base_without_what_is_installed_there(machine):
    base = machine.installation("opt/base")
    env = machine.venv("home/ada/env", f"{base}/bin/python3")
    value = machine.describe(env, base)
    assert value.shown == (env, base)
    assert value.sites == (f"{env}/{SITE}",)
    assert sees(value, f"{env}/{SITE}/inenv")
    assert sees(value, f"{base}/lib/python{VERSION}/os.py")
    assert not sees(value, f"{base}/{SITE}/inbase")


def test_a_virtual_environment_made_in_another_shows_nothing_that_is_installed_in_the_other(machine):
    base = machine.installation("opt/base")
    outer = machine.venv("home/ada/outer", f"{base}/bin/python3")
    inner = machine.venv("home/ada/inner", f"{outer}/bin/python3")
    value = machine.describe(inner, base)
    assert value.links == ((f"{base}/bin/python3", f"{outer}/bin/python3"),)
    assert not sees(value, f"{outer}/{SITE}/inenv")
    assert sees(value, f"{inner}/{SITE}/inenv")
    assert sees(value, os.path.realpath(f"{inner}/bin/python"))


def test_an_interpreter_behind_shims_shows_its_own_version_and_no_other(machine):
    own = machine.installation("home/ada/.pyenv/versions/3.11.7")
    other = machine.installation("home/ada/.pyenv/versions/3.12.1", version="3.12")
    shim = machine.file("home/ada/.pyenv/shims/python3")
    value = machine.describe(own)
    assert value.shown == (own,)
    assert sees(value, f"{own}/{SITE}/inbase")
    assert not sees(value, other)
    assert not sees(value, shim)
    assert python.path_inside(value).startswith(f"{own}/bin:")


def test_the_interpreter_of_the_system_adds_nothing_but_covers_for_the_others_there(machine):
    prefix = machine.installation("usr")
    own = machine.file("usr/lib/python3/dist-packages/own.py")
    other = machine.file("usr/lib/python3.12/dist-packages/other.py")
    local = machine.file("usr/local/lib/python3.12/site-packages/other.py")
    old = machine.file("usr/lib/python2.7/dist-packages/old.py")
    deep = machine.file("usr/local/tool/lib/python3.12/site-packages/other.py")
    sys_path = [f"{prefix}/lib/python{VERSION}", os.path.dirname(own)]
    value = machine.describe(prefix, executable=f"{prefix}/bin/python3", sys_path=sys_path)
    assert value.shown == ()
    assert sees(value, own)
    assert [path for path in (other, local, old, deep) if sees(value, path)] == []
    assert not sees(value, f"{prefix}/{SITE}/inbase"), "it is not on the path of this one"


def test_an_interpreter_below_usr_local_keeps_its_packages_and_covers_those_of_the_system(machine):
    prefix = machine.installation("usr/local")
    system = machine.file("usr/lib/python3/dist-packages/system.py")
    value = machine.describe(prefix)
    assert value.shown == ()
    assert sees(value, f"{prefix}/{SITE}/inbase")
    assert not sees(value, system)


def test_an_installation_that_usr_only_links_to_is_shown_where_it_is(machine):
    real = machine.installation("opt/local")
    prefix = machine.link("usr/local", real)
    value = machine.describe(prefix)
    assert value.shown == (real,)
    assert sees(value, f"{real}/{SITE}/inbase")


@pytest.mark.parametrize("system_site", [False, True])
def test_the_packages_of_the_base_are_shown_exactly_when_the_environment_takes_them(machine, system_site):
    base = machine.installation("opt/base")
    env = machine.venv("home/ada/env", f"{base}/bin/python3", system_site=system_site)
    on_path = [f"{base}/lib/python{VERSION}", f"{env}/{SITE}", f"{base}/{SITE}"]
    value = machine.describe(env, base, sys_path=on_path)
    assert sees(value, f"{base}/{SITE}/inbase") is system_site
    assert (f"{base}/{SITE}" in value.sites) is system_site


def test_the_users_site_directory_is_shown_alone_and_only_when_it_is_in_use(machine):
    base = machine.installation("opt/base")
    user = os.path.dirname(machine.file(f"home/ada/.local/{SITE}/mine.py"))
    sys_path = [f"{base}/lib/python{VERSION}", user, f"{base}/{SITE}"]
    used = machine.describe(base, sys_path=sys_path, user_site=user)
    assert used.shown == (user, base)
    assert python.search_path(used) == (user,)
    unused = machine.describe(base, sys_path=sys_path)
    assert unused.shown == (base,)
    assert python.search_path(unused) == ()


def test_hermit_itself_is_searched_for_where_it_is_shown_and_the_interpreter_does_not_find_it(machine):
    base = machine.installation("opt/base")
    apart = machine.describe(base)
    assert python.search_path(apart, framework=True) == (machine.path("checkout"),)
    assert python.search_path(apart) == ()
    installed = machine.describe(base, package=f"{base}/{SITE}/hermit")
    assert python.search_path(installed, framework=True) == ()
    machine.file("checkout/hermit/__init__.py")
    machine.file(f"opt/base/{SITE}/editable.pth", machine.path("checkout") + "\n")
    assert python.search_path(machine.describe(base), framework=True) == ()


@pytest.mark.parametrize("table", ["MAPPING", "NAMESPACES"])
def test_hermit_as_an_editable_package_of_a_finder_is_found_by_the_interpreter(machine, table):
    base = machine.installation("opt/base")
    machine.file("checkout/hermit/__init__.py")
    machine.file(
        f"opt/base/{SITE}/__editable___x_finder.py", f"{table} = {{'hermit': {machine.path('checkout/hermit')!r}}}\n"
    )
    assert python.search_path(machine.describe(base), framework=True) == ()


def test_an_environment_with_everything_in_it_is_shown_whole_and_its_sisters_are_not(machine):
    prefix = machine.installation("opt/conda")
    for name in ("conda-meta/history", "ssl/cert.pem", "qml/x", "share/x"):
        machine.file(f"opt/conda/{name}")
    sisters = [machine.file(f"opt/conda/{name}/{SITE}/secret.py") for name in ("envs/b", "pkgs/c")]
    value = machine.describe(prefix)
    assert value.shown == (prefix,)
    assert sees(value, f"{prefix}/ssl/cert.pem")
    assert [path for path in sisters if sees(value, path)] == []


def test_an_environment_behind_a_link_is_shown_and_covered_under_both_names(machine):
    base = machine.installation("data/base")
    base_link = machine.link("home/ada/base", base)
    env = machine.venv("data/env", f"{base_link}/bin/python3")
    env_link = machine.link("home/ada/env", env)
    value = machine.describe(env_link, base_link)
    assert value.shown == (base, env, base_link, env_link)
    for root in (base, base_link):
        assert sees(value, f"{root}/lib/python{VERSION}/os.py")
        assert not sees(value, f"{root}/{SITE}/inbase")
    for root in (env, env_link):
        assert sees(value, f"{root}/{SITE}/inenv")


def test_a_program_that_several_links_lead_to_exists_inside_under_each_name(machine):
    base = machine.installation("opt/base")
    machine.link("home/ada/bin/python3.11", f"{base}/bin/python{VERSION}")
    machine.link("home/ada/bin/python3", "python3.11")
    env = machine.venv("home/ada/env", "../../bin/python3")
    value = machine.describe(env, base)
    names = [f"{machine.home}/bin/{name}" for name in ("python3", "python3.11")]
    assert value.links == ((names[1], names[0]), (f"{base}/bin/python{VERSION}", names[1]))
    assert {Link(*pair) for pair in value.links} <= set(python.operations(value, framework=False))
    assert not sees(value, f"{machine.home}/bin/else")


def test_a_link_that_climbs_out_of_a_linked_directory_leads_where_the_kernel_goes(machine):
    base = machine.installation("opt/base")
    machine.link("data/bin/python3", f"../../opt/base/bin/python{VERSION}")
    machine.link("home/ada/tools", machine.path("data"))
    env = machine.venv("home/ada/env", f"{machine.home}/tools/bin/python3")
    value = machine.describe(env, base)
    assert value.links == ((f"{base}/bin/python{VERSION}", f"{machine.home}/tools/bin/python3"),)


@pytest.mark.parametrize("stray", ["data.csv", ".env", "src/checkout/x.py"])
def test_of_a_prefix_that_holds_other_things_only_the_interpreter_is_shown(machine, stray):
    base = machine.installation("opt/base")
    env = machine.venv("home/ada/project", f"{base}/bin/python3")
    secret = machine.file(f"home/ada/project/{stray}")
    value = machine.describe(env, base)
    assert not sees(value, secret)
    for name in ("bin/python3", "pyvenv.cfg", f"{SITE}/inenv"):
        assert sees(value, f"{env}/{name}"), name


@pytest.mark.parametrize("prefix", ["home/ada", "home/ada/.local", "opt"])
def test_of_a_shared_prefix_programs_of_others_and_shared_data_are_not_shown(machine, prefix):
    base = machine.installation(prefix)
    hidden = [machine.file(f"{prefix}/{name}") for name in ("share/keyring", "lib/other/x", "bin/other")]
    if prefix == "opt":
        machine.file("opt/google/x")
    library = machine.file(f"{prefix}/lib/python311.zip")
    value = machine.describe(base)
    assert [path for path in hidden if sees(value, path)] == []
    for name in ("bin/python", "bin/python3", f"bin/python{VERSION}", f"lib/libpython{VERSION}.so", f"{SITE}/inbase"):
        assert sees(value, f"{base}/{name}"), name
    assert sees(value, library)


def test_an_archive_on_the_path_is_shown_where_it_belongs_to_the_installation_only(machine):
    base = machine.installation("opt/base")
    inside = [machine.file(f"opt/base/{name}") for name in ("lib/python311.zip", f"{SITE}/some.egg")]
    outside = machine.file("home/ada/lib.zip")
    value = machine.describe(base, sys_path=[*inside, outside, f"{base}/lib/python{VERSION}", f"{base}/{SITE}"])
    assert all(sees(value, path) for path in inside)
    assert not sees(value, outside)


@pytest.mark.parametrize("entry", ["", "home/ada/code", f"opt/foreign/{SITE}"])
def test_what_else_is_on_the_path_is_not_shown(machine, entry):
    base = machine.installation("opt/base")
    machine.installation("opt/foreign")
    module = machine.file(f"{entry or 'cwd'}/module.py")
    sys_path = [machine.path(entry) if entry else "", f"{base}/lib/python{VERSION}", f"{base}/{SITE}"]
    value = machine.describe(base, sys_path=sys_path)
    assert value.shown == (base,)
    assert not sees(value, module)


@pytest.mark.parametrize("checkout", ["usr/src/app", "opt/conda/work"])
def test_a_checkout_that_lies_in_a_shown_tree_is_covered_and_one_package_of_it_can_be_shown(machine, checkout):
    base = machine.installation("opt/conda")
    machine.file("opt/conda/conda-meta/history")
    package = os.path.dirname(machine.file(f"{checkout}/bench/__init__.py"))
    tasks = machine.file(f"{checkout}/tasks.jsonl")
    machine.file(f"opt/conda/{SITE}/bench.pth", machine.path(checkout) + "\n")
    value = machine.describe(base)
    assert not sees(value, tasks)
    assert not sees(value, package)
    packages = python.package_roots(["bench"], python=value, sys_path=[])
    assert sees(value, package, packages=packages)
    assert not sees(value, tasks, packages=packages)


def test_an_environment_inside_the_checkout_below_usr_stays_while_the_checkout_is_covered(machine):
    base = machine.installation("usr/local")
    env = machine.venv("usr/src/app/.venv", f"{base}/bin/python3")
    tasks = machine.file("usr/src/app/tasks.jsonl")
    machine.file("usr/src/app/bench/__init__.py")
    url = f'{{"dir_info": {{"editable": true}}, "url": "file://{machine.path("usr/src/app")}"}}'
    machine.file(f"usr/src/app/.venv/{SITE}/bench-1.dist-info/direct_url.json", url)
    value = machine.describe(env, base)
    assert not sees(value, tasks)
    assert sees(value, f"{env}/{SITE}/inenv")
    assert sees(value, f"{env}/bin/python")
    assert sees(value, f"{base}/lib/python{VERSION}/os.py")


def test_what_lies_in_a_cover_gets_no_second_one_and_an_empty_directory_gets_none(machine):
    base = machine.installation("opt/conda", version="3.12")
    machine.file("opt/conda/conda-meta/history")
    os.makedirs(machine.path("usr/lib/python3/dist-packages"))
    for name in ("work/bench/x.py", "work/lib.py"):
        machine.file(f"opt/conda/{name}")
    own = os.path.dirname(machine.file(f"opt/conda/{SITE}/all.pth", f"{base}/work\n{base}/work/bench\n"))
    value = machine.describe(base, sys_path=[own])
    assert value.others == (f"{base}/lib/python3.12/site-packages", f"{base}/work")


def test_a_directory_in_the_site_directory_that_a_pth_file_names_stays_shown(machine):
    base = machine.installation("opt/base")
    part = machine.file(f"opt/base/{SITE}/parts/module.py")
    machine.file(f"opt/base/{SITE}/parts.pth", "parts\n")
    assert sees(machine.describe(base), part)


def test_a_pth_file_cannot_cover_the_system_or_the_interpreter_itself(machine):
    base = machine.installation("usr/local")
    named = ["/usr", "/usr/lib", "/usr/local", "/usr/local/lib", f"/usr/local/lib/python{VERSION}", "/usr/bin"]
    lines = "".join(f"{machine.root}{path}\n" for path in named)
    machine.file(f"usr/local/{SITE}/all.pth", lines)
    assert machine.describe(base).others == ()


@pytest.mark.parametrize(("names", "missing"), [(("python",), ["python3"]), (("python", "python3"), [])])
def test_a_name_of_the_interpreter_that_its_directory_lacks_leads_the_path_inside(machine, names, missing):
    base = machine.installation("opt/base")
    env = machine.venv("opt/env", f"{base}/bin/python3", names=names)
    value = machine.describe(env, base)
    links = [operation for operation in python.operations(value, framework=False) if isinstance(operation, Link)]
    own = [Link(f"{env}/bin/python", f"{python.ALIASES}/bin/{name}") for name in missing]
    assert [link for link in links if "/bin/" in link.path] == own
    first = f"{python.ALIASES}/bin:{env}/bin" if missing else f"{env}/bin"
    assert python.path_inside(value).startswith(first + ":")


def test_an_environment_that_holds_copies_of_its_interpreter_has_both_names(machine):
    base = machine.installation("opt/base")
    env = machine.venv("opt/env", f"{base}/bin/python3", names=())
    machine.file("opt/env/bin/python")
    machine.file("opt/env/bin/python3")
    assert machine.describe(env, base).aliases == ()


def test_another_version_that_bears_the_common_name_does_not_take_this_ones_place(machine):
    prefix = machine.installation("usr")
    machine.file("usr/bin/python3.9")
    os.unlink(f"{prefix}/bin/python3")
    machine.link("usr/bin/python3", "python3.9")
    value = machine.describe(prefix, executable=f"{prefix}/bin/python{VERSION}")
    assert value.aliases == ("python", "python3")


@pytest.mark.parametrize("framework", [False, True])
def test_the_framework_in_a_shown_tree_is_covered_unless_it_is_wanted(machine, framework):
    base = machine.installation("opt/base")
    package = os.path.dirname(machine.file(f"opt/base/{SITE}/hermit/__init__.py"))
    value = machine.describe(base, package=package)
    assert sees(value, f"{package}/__init__.py", framework=framework) is framework


@pytest.mark.parametrize("framework", [False, True])
def test_the_framework_in_a_checkout_is_shown_alone_when_it_is_wanted(machine, framework):
    base = machine.installation("opt/base")
    package = os.path.dirname(machine.file("checkout/hermit/__init__.py"))
    machine.file(f"opt/base/{SITE}/hermit.pth", machine.path("checkout") + "\n")
    value = machine.describe(base)
    assert sees(value, package, framework=framework) is framework
    assert not sees(value, machine.file("checkout/tests/x.py"), framework=framework)
