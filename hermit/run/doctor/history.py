"""Git histories that an agent is shown, and what in them comes after HEAD: the fix it is asked for may be there.

Refs, stashes and reflogs name later commits; packs and loose objects hold them also where nothing names them any more.
Git itself says which they are. It is not run on the host: a repository's own settings name programs, and an agent may have
written them, so each repository is looked into in a closed sandbox that shows nothing else.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hermit.domain.bind import contains
from hermit.domain.command import Command
from hermit.domain.limits import Limits
from hermit.domain.sandbox import Sandbox
from hermit.errors import SandboxError
from hermit.run.doctor.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hermit.config.schema import RunConfig
    from hermit.domain.command import Outcome
    from hermit.sandbox import Place

MOST_ENTRIES = 200_000
MOST_NAMES = 5
PATIENCE_S = 300.0
ID = "later_commits"
PARTS = {"HEAD", "objects", "refs"}
SETTINGS = (
    *(("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_NO_LAZY_FETCH", "1")),
    *(("GIT_OPTIONAL_LOCKS", "0"), ("GIT_TERMINAL_PROMPT", "0"), ("HOME", "/nonexistent")),
)
# Prints a line for each name that leads past HEAD, and for each kind of object that HEAD does not reach.
SCRIPT = r"""
git rev-parse --git-dir >/dev/null || exit 3
head=$(git rev-parse --quiet --verify 'HEAD^{commit}') || head=
git for-each-ref ${head:+--no-merged="$head"} --format='name %(refname)'
for name in ORIG_HEAD FETCH_HEAD MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD REBASE_HEAD; do
    id=$(git rev-parse --quiet --verify "$name^{commit}") || continue
    [ "$(git rev-list --count "$id" ${head:+"^$head"})" = 0 ] || echo "name $name"
done
[ "$(git rev-list --count --reflog ${head:+"^$head"})" = 0 ] || echo 'name the reflog'
[ -z "$head" ] || git fsck --unreachable --cache --connectivity-only --no-reflogs --no-progress "$head" 2>/dev/null |
    awk '$1 == "unreachable" { count[$2]++ } END { for (kind in count) print kind, count[kind] }'
"""


@dataclass(frozen=True)
class Later:
    """What of a repository comes after HEAD.

    Args:
        names: What leads there: refs, files such as ``ORIG_HEAD``, and the reflog.
        objects: How many objects of each kind HEAD does not reach.
    """

    names: tuple[str, ...] = ()
    objects: tuple[tuple[str, int], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.names or self.objects)

    def __str__(self) -> str:
        counted = ", ".join(f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in self.objects)
        shown = ", ".join(self.names[:MOST_NAMES])
        more = f" and {len(self.names) - MOST_NAMES} more" if len(self.names) > MOST_NAMES else ""
        return "; ".join(
            filter(None, (f"past HEAD: {shown}{more}" if shown else "", f"not in HEAD: {counted}" if counted else ""))
        )


def findings(config: RunConfig, where: Place) -> list[Finding]:
    """A warning for each repository that agents see and that holds more than HEAD; none where there is none."""
    environment = config.environment
    tops = [str(path) for path in (*environment.read, *environment.write)]
    found: list[Finding] = []
    repositories = dict.fromkeys(path for top in tops for path in (*_around(top), *_below(top, found)))
    if environment.runner == "host" or not (config.sandbox.enabled and where.confined):  # the task set is seen too
        repositories |= dict.fromkeys(_of_work_tree(os.path.dirname(config.data.tasks)))
    for path in repositories:
        found += looked_into(path, where)
    return found


def looked_into(path: str, where: Place) -> list[Finding]:
    """What is wrong with one repository."""
    cure = (
        "show agents a copy without .git, or with HEAD's own history alone:"
        " git clone --no-local --single-branch --no-tags SOURCE COPY && git -C COPY remote remove origin"
    )
    later, why = asked(path, where)
    if why:
        words = f"it has a history, and nobody could look into it: {why}"
        return [Finding(f"history in {path}", False, words, cure, needed=False, id=ID)]
    if not later:
        return []
    words = f"the solution may be there ({later})"
    return [Finding(f"history in {path}", False, words, cure, needed=False, id=ID)]


def asked(path: str, where: Place) -> tuple[Later, str]:
    """What git says of one repository, or why it says nothing."""
    if not where.confined:
        return Later(), "no sandbox starts here, and git is not run outside one"
    sandbox = Sandbox(
        role="check", read=(path,), env=(("GIT_DIR", path), *SETTINGS), limits=Limits(wall_s=PATIENCE_S, memory_mb=2048)
    )
    try:
        outcome = where.run(sandbox, Command(argv=("sh", "-c", SCRIPT)), keep=lambda _: None)
    except SandboxError as error:
        return Later(), error.what
    if outcome.code == 0 and not outcome.stdout.dropped:
        return said(outcome.stdout.kept), ""
    return Later(), _why(outcome)


def said(lines: bytes) -> Later:
    """What the lines of the script come to."""
    pairs = [line.split(" ", 1) for line in lines.decode("utf-8", "replace").splitlines() if " " in line]
    names = tuple("".join(filter(str.isprintable, rest)) for kind, rest in pairs if kind == "name")
    return Later(names, tuple(sorted((kind, int(rest)) for kind, rest in pairs if kind != "name" and rest.isdecimal())))


def _why(outcome: Outcome) -> str:
    if outcome.timed_out:
        return f"git took longer than {PATIENCE_S:g} s"
    words = outcome.stderr.kept.decode("utf-8", "replace").strip().splitlines()
    return "".join(filter(str.isprintable, words[-1]))[:200] if words else f"git ended with {outcome.ending}"


def _below(top: str, found: list[Finding]) -> Iterator[str]:
    """Every repository at or below a path; no link is followed, so nothing leads outside it."""
    entries = 0
    for path, directories, files, _ in os.fwalk(os.path.realpath(top), follow_symlinks=False):
        if {*directories, *files} >= PARTS:
            yield path
            directories[:] = [name for name in directories if name == "modules"]
        entries += len(directories) + len(files)
        if entries > MOST_ENTRIES:
            words = f"it holds more than {MOST_ENTRIES} entries, and the rest was not searched for git histories"
            cure = "declare a narrower path, or make sure yourself that no .git is below it"
            found.append(Finding(f"histories in {top}", False, words, cure, needed=False, id=ID))
            return


def _around(top: str) -> Iterator[str]:
    """The repository in which a path lies, such as one of its packs."""
    real = os.path.realpath(top)
    for path in _parents(real):
        if path != real and _is_repository(path) and contains(path, real):
            yield path


def _of_work_tree(path: str) -> Iterable[str]:
    """The repository of the work tree in which a path lies."""
    around = (os.path.join(parent, ".git") for parent in _parents(os.path.realpath(path)))
    return [found for found in around if _is_repository(found)][:1]


def _is_repository(path: str) -> bool:
    return all(os.path.lexists(os.path.join(path, part)) for part in PARTS)


def _parents(path: str) -> Iterator[str]:
    """A path and every directory above it, but the root."""
    while len(path) > 1:
        yield path
        path = os.path.dirname(path)
