"""The Python a sandbox shows: the interpreter that runs Hermit, with its environment as installed.

Three things are never shown: what ``.pth`` files and ``PYTHONPATH`` add beside the site directories, the site directories
of other interpreters, and what else lies in a directory that somebody installed an interpreter into. A path that is a
link, or lies behind one, is shown under both of its names, so that a cover has to be laid over both.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import glob
import os
import re
import site
import sys
import sysconfig
import urllib.parse
from importlib import machinery
from typing import TYPE_CHECKING

import hermit
from hermit.bwrap.argv import Empty, Link, Operation, Show
from hermit.bwrap.system import ROOT_DIRECTORIES
from hermit.domain.bind import Bind, contains
from hermit.domain.python import Package, Python

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

SYSTEM = "/usr"
# What every sandbox shows of the system, as far as an interpreter can lie in it.
BY_SYSTEM = (SYSTEM, *ROOT_DIRECTORIES, "/etc/alternatives")
# Where below it interpreters are installed: packaged ones, those built by hand, and trees of their own.
SYSTEM_PREFIXES = ("", "/local", "/local/*", "/local/*/versions/*")
# Too much of the system to be covered, whatever a .pth file says.
NEVER_COVERED = ("bin", "sbin", "lib", "lib64", "libexec", "share", "src", "include", "local")
# A directory with nothing but these is an installation; conda's have many more, and one of them marks them.
OWN = re.compile(r"(bin|etc|include|lib(64)?|share|pyvenv\.cfg|\.gitignore|\.lock|CACHEDIR\.TAG|BUILD|\.hermit-.*)\Z")
CONDA = "conda-meta"
# Where the names of the interpreter lie that its own directory lacks; and the names.
ALIASES = "/run/python"
NAMES = ("python", "python3")
METADATA = (".dist-info", ".egg-info")
SUFFIXES = tuple(machinery.all_suffixes())


def current() -> Python:
    """The interpreter that runs this process."""
    return describe(
        executable=sys.executable,
        prefix=sys.prefix,
        base_prefix=sys.base_prefix,
        sys_path=sys.path,
        version=sysconfig.get_python_version(),
        package=os.path.dirname(os.path.abspath(hermit.__file__)),
        installed=(sysconfig.get_path("purelib"), sysconfig.get_path("platlib")),
        standard=(sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")),
        user_site=site.getusersitepackages() if site.ENABLE_USER_SITE else "",
        home=os.path.expanduser("~"),
    )


def describe(
    *,
    executable: str,
    prefix: str,
    base_prefix: str,
    sys_path: Sequence[str],
    version: str,
    package: str,
    installed: Sequence[str] = (),
    standard: Sequence[str] = (),
    user_site: str = "",
    home: str = "/root",
) -> Python:
    """The interpreter of these facts, from what lies on disk and from nothing else.

    ``installed`` and ``standard`` name its site directories and standard library where they are not in the usual
    places of ``version``; ``user_site`` is empty where it is not used; ``home`` is never shown whole.
    """
    executable, prefix, base = (os.path.abspath(path) for path in (executable, prefix, base_prefix))
    prefixes = tuple(dict.fromkeys((prefix, base)))
    settings = _text(f"{prefix}/pyvenv.cfg")
    own = prefixes if re.search(r"(?im)^include-system-site-packages\s*=\s*true", settings) else (prefix,)
    usual = [path for root in own for path in _usual_sites(root, version)] + [user_site] * bool(user_site)
    sites = _on_path(sys_path, [*usual, *installed])
    libraries = [path for root in prefixes for path in _libraries(root, version)]
    libraries += [os.path.abspath(path) for path in standard if os.path.isdir(path)]
    needed = [path for root in prefixes for path in _trees(root, version=version, home=home)]
    needed += [*libraries, *sites, os.path.realpath(executable)]
    shown = _named(needed, but=BY_SYSTEM)
    others = _others(prefixes, shown, sites=(*sites, *libraries), kept=(*needed, *prefixes, executable))
    # What is needed of an environment in a checkout that is covered is shown in that cover.
    shown += tuple(path for path in _named(needed) if _within(path, others))
    return Python(
        executable=executable,
        prefix=prefix,
        base_prefix=base,
        sites=sites,
        standard=tuple(dict.fromkeys(libraries)),
        shown=shown,
        links=tuple(_links(executable, shown)),
        others=others,
        aliases=tuple(_aliases(executable, venv=bool(settings))),
        user_site=os.path.abspath(user_site) if user_site else "",
        package=package,
    )


def operations(python: Python, *, framework: bool, packages: Sequence[Package] = ()) -> tuple[Operation, ...]:
    """Shows the environment and its standard library, and an empty directory in place of what is not part of them.

    The ``hermit`` package is shown at its own place when ``framework``, and covered where a shown tree holds it
    otherwise. What ``.pth`` files add beside the site directories is shown as far as ``packages`` names it.
    """
    wanted = {path for package in packages for path in package.shown}
    if framework and not visible(python, python.package):
        wanted.add(python.package)
    placed: list[Operation] = [Show(Bind(path, path)) for path in sorted({*python.shown, *wanted})]
    placed += [Link(text, path) for text, path in python.links]
    placed += [Empty(path) for path in python.others]
    if not framework and python.package not in wanted and visible(python, python.package):
        placed += [Empty(path) for path in _names(os.path.realpath(python.package), python.shown)]
    placed += _alias_operations(python)
    return tuple(placed)


def _alias_operations(python: Python) -> Iterator[Operation]:
    """The names that are missing, in a directory of their own, which is a virtual environment where the real one is."""
    for name in python.aliases:
        yield Link(python.executable, f"{ALIASES}/bin/{name}")
    if python.aliases and os.path.isfile(f"{python.prefix}/pyvenv.cfg"):
        yield Show(Bind(f"{python.prefix}/pyvenv.cfg", f"{ALIASES}/pyvenv.cfg"))
        libraries = _parts(python.prefix, ["lib", "lib64"])
        yield from (Link(path, f"{ALIASES}/{os.path.basename(path)}") for path in libraries)


def path_inside(python: Python) -> str:
    """The ``PATH`` inside: this environment's programs first, then the system's."""
    own = [f"{ALIASES}/bin"] if python.aliases else []
    own.append(os.path.dirname(python.executable))
    return ":".join(dict.fromkeys([*own, "/usr/local/bin", "/usr/bin", "/bin"]))


def search_path(python: Python, packages: Iterable[Package] = (), *, framework: bool = False) -> tuple[str, ...]:
    """What has to be on ``sys.path`` inside beyond what the interpreter finds by itself: for a worker, or ``PYTHONPATH``."""
    user = [python.user_site] if python.user_site in python.sites else []
    own = [os.path.dirname(python.package)] if framework and not _installed(python) else []
    return tuple(dict.fromkeys([*(path for package in packages for path in package.search), *user, *own]))


def _installed(python: Python) -> bool:
    """Whether the interpreter finds the package that runs it by itself: in a site directory, or as an editable one."""
    added, mapped = _beside(python.sites)
    return os.path.dirname(python.package) in (*python.sites, *added) or python.package in mapped.get("hermit", ())


def visible(python: Python, path: str) -> bool:
    """Whether what is shown of the system and of the interpreter holds this path."""
    real = os.path.realpath(path)
    shows, covers = (
        max((len(root) for root in map(os.path.realpath, roots) if contains(root, real)), default=0)
        for roots in ((*python.shown, SYSTEM), python.others)
    )
    return shows > covers


def _parts(root: str, patterns: Iterable[str]) -> list[str]:
    return [path for pattern in patterns for path in sorted(glob.glob(f"{glob.escape(root)}/{pattern}"))]


def _libraries(root: str, version: str) -> list[str]:
    """Where the standard library lies in a prefix; most have one of the two, and the other as a link to it."""
    found = _parts(root, [f"lib{bits}/python{version}{abi}" for bits in ("", "64") for abi in ("", "t")])
    return list({os.path.realpath(path): path for path in reversed(found)}.values())


def _usual_sites(root: str, version: str) -> list[str]:
    kinds = [f"lib*/python{version}{abi}/{name}-packages" for abi in ("", "t") for name in ("site", "dist")]
    return _parts(root, [*kinds, f"local/lib/python{version}/dist-packages", "lib/python3/dist-packages"])


def _on_path(sys_path: Iterable[str], candidates: Iterable[str]) -> tuple[str, ...]:
    """The entries of the path that are site directories, by the name they have there."""
    real = {os.path.realpath(path) for path in candidates}
    entries = dict.fromkeys(os.path.abspath(entry) for entry in sys_path if entry)
    return tuple(entry for entry in entries if os.path.realpath(entry) in real and os.path.isdir(entry))


def _trees(root: str, *, version: str, home: str) -> list[str]:
    """What has to be shown of one prefix: all of it, or what belongs to the interpreter where others live there too."""
    if _is_installation(root, os.path.abspath(home)):
        return [root]
    own = ["bin"] if os.path.isfile(f"{root}/pyvenv.cfg") else [f"bin/{name}" for name in (*NAMES, f"python{version}")]
    own.append(f"lib/python{version.replace('.', '')}.zip")
    return _parts(root, ["pyvenv.cfg", *own, "lib/libpython*", "lib64/libpython*"])


def _is_installation(root: str, home: str) -> bool:
    """Whether a directory holds an interpreter and nothing of anybody else."""
    real, real_home = os.path.realpath(root), os.path.realpath(home)
    if contains(real, real_home) or real == f"{real_home}/.local" or not os.path.isdir(root):
        return False
    return os.path.isdir(f"{root}/{CONDA}") or all(OWN.match(entry) for entry in os.listdir(root))


def _named(paths: Iterable[str], *, but: Iterable[str] = ()) -> tuple[str, ...]:
    """Each path under its name and its real one, without what another of them, or one of ``but``, holds already."""
    names = {name for path in paths for name in (os.path.abspath(path), os.path.realpath(path))}
    return tuple(sorted(name for name in names if not _within(name, (names - {name}) | set(but))))


def _within(path: str, roots: Iterable[str]) -> bool:
    return any(contains(root, path) for root in roots)


def _names(real: str, shown: Iterable[str]) -> list[str]:
    """Every name under which a real path is shown."""
    trees = {tree: os.path.realpath(tree) for tree in (*shown, SYSTEM)}
    return sorted({tree + real[len(root) :] for tree, root in trees.items() if contains(root, real)})


def _links(executable: str, shown: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The links from the executable's name to the program itself, those that lie in nothing that is shown."""
    path = executable
    for _ in range(40):  # as many as the kernel follows
        inside = _within(path, (*shown, *BY_SYSTEM))
        target = os.path.realpath(path)
        if os.path.islink(path):
            text = os.readlink(path)
            # The words of the link have to exist; only where it climbs does the real directory say where it leads.
            plain = os.path.isabs(text) and ".." not in text.split("/")
            directory, name = os.path.split(os.path.join(os.path.dirname(path), text))
            target = os.path.normpath(text) if plain else os.path.join(os.path.realpath(directory), name)
        if target == path:
            return
        if not inside:
            yield target, path
        path = target


def _aliases(executable: str, *, venv: bool) -> list[str]:
    """The names that start no interpreter, or another one, in the executable's directory."""
    directory, real = os.path.dirname(executable), os.path.realpath(executable)
    if venv:  # each name may be a copy of its own
        return [name for name in NAMES if not os.path.isfile(f"{directory}/{name}")]
    return [name for name in NAMES if os.path.realpath(f"{directory}/{name}") != real]


def _others(
    prefixes: Sequence[str], shown: Sequence[str], *, sites: Sequence[str], kept: Iterable[str]
) -> tuple[str, ...]:
    """What has to be covered, where it holds anything: an empty directory needs no cover."""
    roots = [*map(glob.escape, prefixes), *(glob.escape(SYSTEM) + below for below in SYSTEM_PREFIXES)]
    found = [path for root in roots for path in glob.glob(f"{root}/lib*/python*/[sd]i[ts][et]-packages")]
    found += [path for root in roots for name in ("envs", "pkgs") for path in glob.glob(f"{root}/{CONDA}/../{name}")]
    places, mapped = _beside(sites)
    added = [*places, *_checkouts(sites), *(os.path.dirname(path) for paths in mapped.values() for path in paths)]
    added = [path for path in added if not _within(os.path.realpath(path), map(os.path.realpath, sites))]
    real_kept = {os.path.realpath(path) for path in kept}
    system = {SYSTEM, *(f"{SYSTEM}{below}/{name}" for below in ("", "/local") for name in NEVER_COVERED)}
    covered = set()
    for real in {os.path.realpath(path) for path in (*found, *added) if os.path.isdir(path)} - system - real_kept:
        # One that cannot be listed here might be inside.
        if not os.access(real, os.R_OK) or os.listdir(real):
            covered |= set(_names(real, shown))
    return tuple(sorted(path for path in covered if not _within(path, covered - {path})))


def _beside(sites: Iterable[str]) -> tuple[list[str], dict[str, list[str]]]:
    """What site directories add beside them: directories, and packages by name; files are read and never run."""
    places: list[str] = []
    mapped: dict[str, list[str]] = {}
    for directory in sites:
        for path in _parts(directory, ["*.pth", "*.egg-link"]):
            lines = [
                line.strip() for line in _text(path).splitlines() if not line.startswith(("import ", "import\t", "#"))
            ]
            places += [os.path.normpath(os.path.join(directory, line)) for line in lines if line]
        for path in _parts(directory, ["__editable__*.py"]):
            for name, targets in _tables(_text(path)):
                mapped.setdefault(name, []).extend(os.path.normpath(os.path.join(directory, path)) for path in targets)
    return [path for path in dict.fromkeys(places) if os.path.isdir(path)], mapped


def _checkouts(sites: Iterable[str]) -> list[str]:
    """The directories from which distributions are installed as editable ones."""
    texts = [_text(path) for root in sites for path in _parts(root, ["*.dist-info/direct_url.json"])]
    urls = [re.search(r'"url": *"file://([^"]+)"', text) for text in texts if re.search(r'"editable": *true', text)]
    return [urllib.parse.unquote(url[1]) for url in urls if url]


def _tables(finder: str) -> Iterator[tuple[str, list[str]]]:
    """The packages, and the portions of namespaces, that an editable install's finder knows."""
    with contextlib.suppress(SyntaxError, ValueError, RecursionError):
        for node in ast.parse(finder).body:
            if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
                continue
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            if isinstance(target, ast.Name) and target.id in ("MAPPING", "NAMESPACES"):
                table = ast.literal_eval(node.value)
                for name, paths in table.items() if isinstance(table, dict) else ():
                    yield str(name), [str(path) for path in (paths if isinstance(paths, list) else [paths])]


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""


def package_roots(names: Iterable[str], *, python: Python, sys_path: Sequence[str]) -> tuple[Package, ...]:
    """Where packages lie that are not in a site directory: editable ones, and those on ``PYTHONPATH``.

    A name is that of a package or of a distribution. Nothing is imported. A package that is installed as usual needs
    nothing, and comes back empty.

    Raises:
        ValueError: No package or distribution has this name; the nearest one that exists is named.
    """
    search = _Search(python, sys_path)
    return tuple(search.package(name) for name in dict.fromkeys(names))


class _Search:
    """Everything that an interpreter could import, in the order in which it looks."""

    def __init__(self, python: Python, sys_path: Sequence[str]) -> None:
        added, self._mapped = _beside(python.sites)
        entries = [os.path.abspath(entry) for entry in sys_path if entry]
        self._python = python
        self._places = [path for path in dict.fromkeys([*entries, *python.sites, *added]) if os.path.isdir(path)]
        self._metadata = [path for place in self._places for path in _parts(place, [f"*{kind}" for kind in METADATA])]

    def package(self, name: str) -> Package:
        metadata = [path for path in self._metadata if _distribution(path) == _canonical(name)]
        found = self._module(name) or [pair for path in metadata for pair in self._distributed(path)]
        if not found:
            raise ValueError(self._unknown(name, metadata))
        shown = dict.fromkeys(path for _, path in found if not visible(self._python, path))
        usual = (*self._python.sites, *self._python.standard)
        search = dict.fromkeys(place for place, _ in found if place and not _within(place, usual))
        return Package(name=name, shown=tuple(shown), search=tuple(search))

    def _module(self, name: str) -> list[tuple[str, str]]:
        """The place and the path of a package or module; a namespace package has several."""
        if not all(part.isidentifier() for part in name.split(".")):
            return []
        portions = []
        for place in self._places:
            base = os.path.join(place, *name.split("."))
            if file := _file(base) or _file(f"{base}/__init__"):
                return [(place, os.path.dirname(file) if file.startswith(f"{base}/") else file)]
            if os.path.isdir(base):
                portions.append((place, base))
        mapped = [(path, _file(path) or path) for path in self._mapped.get(name, ())]
        # Its finder makes it importable; its directory does so too where it has the same name.
        known = [(os.path.dirname(path) if os.path.basename(path) == name else "", file) for path, file in mapped]
        return [pair for pair in known if os.path.exists(pair[1])] or portions

    def _distributed(self, metadata: str) -> list[tuple[str, str]]:
        """The modules of one distribution: those it lists, else those that its record or its name lets expect."""
        paths = (line.rsplit(",", 2)[0].strip('"') for line in _text(f"{metadata}/RECORD").splitlines())
        code = (path for path in paths if path.endswith(SUFFIXES) and not path.startswith("__editable__"))
        names = _text(f"{metadata}/top_level.txt").split() or [re.split(r"[/.]", path)[0] for path in code]
        expected = dict.fromkeys([*names, _distribution(metadata).replace("-", "_")])
        return [pair for name in expected for pair in self._module(name)]

    def _unknown(self, name: str, metadata: list[str]) -> str:
        if metadata:
            return f"{name!r} is installed from {metadata[0]}, which names none of its packages; name the package"
        known = {_distribution(path) for path in self._metadata} | self._mapped.keys()
        for place in self._places:
            packages = _parts(place, ["*/__init__.py", "*.py"])
            known |= {os.path.relpath(path, place).split(os.sep)[0].removesuffix(".py") for path in packages}
        near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0)
        return f"no package or distribution is named {name!r}" + (f"; the nearest is {near[0]!r}" if near else "")


def _file(base: str) -> str:
    """The file that a module is read from; empty where there is none."""
    return next((base + suffix for suffix in SUFFIXES if os.path.isfile(base + suffix)), "")


def _distribution(metadata: str) -> str:
    return _canonical(os.path.splitext(os.path.basename(metadata))[0].split("-")[0])


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
