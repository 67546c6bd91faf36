"""`adapter.yaml`: what an adapter exports, which of its files a learner may change, and who checks it.

It is read with the place of every value, strictly: a section or a key that nobody knows is an error, and so is a value that
means nothing. Five of its sections are the template's and never change; ``origin`` says where this version comes from.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hermit.adapter import names
from hermit.adapter.fields import Fields
from hermit.adapter.globs import Glob
from hermit.config.document import Placed, Problem, Where, described, parse

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE = "adapter.yaml"
CONTEXT = "ADAPTER.md"
MOST_BYTES = 64 * 1024
FIXED_SECTIONS = ("template", "exports", "structure", "check", "evolver_tools")
SECTIONS = (*FIXED_SECTIONS, "origin")
# Of what an adapter is to whoever uses it; another number would mean that this version cannot.
CONTRACT = 1
MOST_RULES = 100
ID = re.compile(r"[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?")
VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]{0,31}")
CALLABLE = re.compile(r"(?P<file>[^:]+\.py):(?P<name>[A-Za-z_]\w*)")
SECTION = re.compile(rb"(?P<name>[A-Za-z_]+)[ \t]*:(?=[ \t\r\n]|$)")


@dataclass(frozen=True)
class Identity:
    """Which template an adapter is of.

    Args:
        id: Its name: lower-case letters, digits and dashes.
        version: Its version, as text.
        contract: Which contract it is written for.
        name: What a person calls it.
    """

    id: str
    version: str
    contract: int = CONTRACT
    name: str = ""


@dataclass(frozen=True)
class Exports:
    """What an agent gets of an adapter.

    Args:
        context: The files of the context, ``ADAPTER.md`` first.
        skills: The directory that holds a directory for each skill; empty where there are none.
        agents: The directory that holds a file for each role; empty where there are none.
        tools: The Python file whose public functions are tools; empty where there are none.
    """

    context: tuple[str, ...] = (CONTEXT,)
    skills: str = ""
    agents: str = ""
    tools: str = ""


@dataclass(frozen=True)
class Format:
    """What a file that a learner may change has to be.

    Args:
        max_bytes: The most bytes each such file holds.
        max_files: The most files of this rule.
        text: Whether it has to be text in UTF-8.
        frontmatter: The keys that the YAML at its head has to hold; ``None`` where it needs none.
    """

    max_bytes: int | None = None
    max_files: int | None = None
    text: bool = False
    frontmatter: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Rule:
    """Files that a learner may make, change and remove."""

    glob: Glob
    format: Format = Format()


@dataclass(frozen=True)
class Structure:
    """Which files there may be.

    Args:
        learnable: The rules of those that a learner may change; the first that fits a file is its own.
        fixed: The patterns of those that stay as the template has them; they come before any rule.
    """

    learnable: tuple[Rule, ...] = ()
    fixed: tuple[Glob, ...] = ()

    def is_fixed(self, path: str) -> bool:
        """Whether a file stays as the template has it."""
        return any(glob.matches(path) for glob in self.fixed)

    def rule(self, path: str) -> Rule | None:
        """The rule under which a learner may change a file; ``None`` where there is none."""
        if path == FILE or self.is_fixed(path):
            return None
        return next((rule for rule in self.learnable if rule.glob.matches(path)), None)

    def holds(self, path: str) -> bool:
        """Whether there may be a file of this path."""
        return path == FILE or self.is_fixed(path) or self.rule(path) is not None

    def reaches(self, directory: str) -> bool:
        """Whether there may be a file below this directory."""
        return any(glob.reaches(directory) for glob in (*self.fixed, *(rule.glob for rule in self.learnable)))


@dataclass(frozen=True)
class Manifest:
    """An ``adapter.yaml``.

    Args:
        template: Which template it is of.
        exports: What an agent gets.
        structure: Which files there may be.
        check: The template's own check, as ``file.py:function``; empty where it has none.
        evolver_tools: Tools of the template for a learner, each as ``file.py:function``.
        origin: Where this version comes from; nobody trusts it.
        source: The text of each fixed section as it is written.
    """

    template: Identity
    exports: Exports = Exports()
    structure: Structure = Structure()
    check: str = ""
    evolver_tools: tuple[str, ...] = ()
    origin: Mapping[str, Any] = field(default_factory=dict, hash=False)
    source: Mapping[str, bytes] = field(default_factory=dict, hash=False)

    def changed(self, other: Manifest) -> tuple[str, ...]:
        """The fixed sections in which another manifest differs: byte for byte, and in what they mean."""
        return tuple(
            name
            for name in FIXED_SECTIONS
            if self.source.get(name) != other.source.get(name) or getattr(self, name) != getattr(other, name)
        )


def read(data: bytes, *, name: str = FILE) -> tuple[Manifest | None, tuple[Problem, ...]]:
    """The manifest that a file holds, and everything that is wrong with it; ``None`` where anything is.

    Args:
        data: What the file holds.
        name: What its places are named by.
    """

    def at(line: int) -> Where:
        return Where((0, line), f"{name}:{line}")

    if len(data) > MOST_BYTES:
        return None, (Problem(at(1), f"the manifest has more than {MOST_BYTES} bytes"),)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return None, (Problem(at(line), "the manifest is not UTF-8 text"),)
    root, problems = parse(text, at=at)
    if not problems and not isinstance(root.value, dict):
        problems = [Problem(root.where, f"expected a mapping of sections, found {described(root.plain())}")]
    if problems:
        return None, tuple(sorted(problems))
    return _read(root, data, at(1))


def sections(data: bytes) -> dict[str, bytes]:
    """The text of each section as it is written: from the line that names it up to the next one's, without blank ends."""
    found: dict[str, bytes] = {}
    name = ""
    for line in data.splitlines(keepends=True):
        head = SECTION.match(line)
        if head:
            name = head["name"].decode()
        found[name] = found.get(name, b"") + line
    return {name: text.rstrip() for name, text in found.items()}


def without_origin(data: bytes) -> bytes:
    """The manifest without its last word on where it comes from: what a version keeps of its template's."""
    texts = sections(data)
    return b"".join(text + b"\n" for name, text in texts.items() if name != "origin" and text)


def _read(root: Placed, data: bytes, start: Where) -> tuple[Manifest | None, tuple[Problem, ...]]:
    fields = Fields(root, known=SECTIONS, above="")
    texts = sections(data)
    for name in root.value:
        if name in SECTIONS and name not in texts:
            fields.wrong(name, "expected a section that begins a line of its own, without quotes")
    if re.search(rb"(?m)^(%|---|\.\.\.)", data):
        fields.problems.append(Problem(start, "expected one document without directives and document marks"))
    found = Manifest(
        template=_identity(fields.section("template", known=("id", "version", "contract", "name"), required=True)),
        exports=_exports(fields.section("exports", known=("context", "skills", "agents", "tools"))),
        structure=_structure(fields.section("structure", known=("learnable", "fixed"), required=True)),
        check=_callable(fields, "check"),
        evolver_tools=tuple(
            text
            for text in fields.texts("evolver_tools", most=MOST_RULES)
            if _is_callable(fields, "evolver_tools", text)
        ),
        origin=fields.free("origin"),
        source={name: texts[name] for name in FIXED_SECTIONS if name in texts},
    )
    if fields.problems:
        return None, tuple(sorted(set(fields.problems)))
    return found, ()


def _identity(fields: Fields) -> Identity:
    found = Identity(
        fields.text("id"),
        fields.scalar_text("version"),
        fields.whole("contract", default=CONTRACT),
        fields.text("name"),
    )
    if not ID.fullmatch(found.id):
        fields.wrong("id", "expected lower-case letters, digits and dashes")
    if not VERSION.fullmatch(found.version):
        fields.wrong("version", "expected a version such as 1 or 1.2")
    if found.contract != CONTRACT:
        fields.wrong("contract", f"expected {CONTRACT}, the contract that this version of Hermit knows")
    return found


def _exports(fields: Fields) -> Exports:
    given = fields.texts("context", most=MOST_RULES)
    paths = {"skills": fields.text("skills"), "agents": fields.text("agents"), "tools": fields.text("tools")}
    for key, values in ({"context": given} | {key: (value,) for key, value in paths.items() if value}).items():
        for value in values:
            if not names.inside(value):
                fields.wrong(key, "expected a path in the adapter, without '..'")
    if paths["tools"] and not re.fullmatch(r"[^/]+\.py", paths["tools"]):
        fields.wrong("tools", "expected a Python file beside the manifest")
    return Exports(tuple(dict.fromkeys((CONTEXT, *given))), **paths)


def _structure(fields: Fields) -> Structure:
    rules = []
    for item in fields.items("learnable", most=MOST_RULES):
        given = item if isinstance(item.value, dict) else Placed({"path": item}, item.where)
        rule = Fields(given, known=("path", "format"), above=f"{fields.above}learnable.", problems=fields.problems)
        glob = _glob(rule, "path", rule.text("path"))
        kinds = rule.section("format", known=("max_bytes", "max_files", "text", "frontmatter"))
        form = Format(
            kinds.whole("max_bytes", default=None),
            kinds.whole("max_files", default=None),
            kinds.flag("text"),
            kinds.frontmatter("frontmatter"),
        )
        rules += [Rule(glob, form)] if glob else []
    fixed = [_glob(fields, "fixed", text) for text in fields.texts("fixed", most=MOST_RULES)]
    return Structure(tuple(rules), tuple(glob for glob in fixed if glob))


def _glob(fields: Fields, key: str, text: str) -> Glob | None:
    try:
        return Glob(text)
    except ValueError as error:
        fields.wrong(key, str(error))
        return None


def _callable(fields: Fields, key: str) -> str:
    text = fields.text(key)
    return text if text and _is_callable(fields, key, text) else ""


def _is_callable(fields: Fields, key: str, text: str) -> bool:
    fits = CALLABLE.fullmatch(text)
    if fits and names.inside(fits["file"]):
        return True
    fields.wrong(key, "expected file.py:function, with a file of the template")
    return False
