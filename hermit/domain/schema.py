r"""What each field of a sandbox takes in JSON, as a JSON Schema (draft 2020-12): the reader goes by it, and so can others.

A ``title`` says what is expected, a ``description`` what it means. The patterns are read alike by Python and by
ECMA-262 with the flag ``u``, but for ``\w``, which is ASCII alone there.
"""

from __future__ import annotations

from typing import Any

from hermit.domain.limits import MOST, Limits
from hermit.domain.network import FIRST_PORT, LAST_PORT, Network
from hermit.domain.sandbox import Enforce, Sandbox

Schema = dict[str, Any]

# `$` would also match before a line break at the end, in Python.
END = r"(?![\s\S])"
# The kernel takes no NUL, and no encoding takes a surrogate alone but for the 128 that stand for bytes beyond UTF-8.
NOT_TEXT = r"\u0000\ud800-\udc7f\udd00-\udfff"
PATH = rf"(?:/(?!\.\.(?:/|{END}))[^/{NOT_TEXT}]*)+{END}"
# A number from 1024 to 65535, as an object's key has to be text.
PORT = (
    r"^(?:102[4-9]|10[3-9][0-9]|1[1-9][0-9]{2}|[2-9][0-9]{3}|[1-5][0-9]{4}"
    rf"|6[0-4][0-9]{{3}}|65[0-4][0-9]{{2}}|655[0-2][0-9]|6553[0-5]){END}"
)

TEXT: Schema = {"type": "string", "title": "text without a NUL", "pattern": rf"^[^{NOT_TEXT}]*{END}"}
ANY_PATH: Schema = {"type": "string", "title": "an absolute path without '..'", "pattern": f"^{PATH}"}
# Nothing is mounted at the root: the sandbox builds its own.
MOUNTED: Schema = {
    "type": "string",
    "title": "an absolute path without '..' that is not the root",
    "pattern": rf"^(?!/(?:\.?/)*\.?{END}){PATH}",
}
NAME: Schema = {
    "type": "string",
    "title": "a name such as bench.scoring of a module, package or distribution",
    "pattern": rf"^\w[\w-]*(?:\.\w[\w-]*)*{END}",
}
HOST: Schema = {
    "type": "string",
    "title": "a host such as api.example.com, *.example.com or api.example.com:8443",
    "pattern": rf"^[^/\\@\s{NOT_TEXT}]+{END}",
}
PASSED: Schema = {
    "type": "string",
    "title": "the name of a variable, or a pattern such as MWM_*",
    "pattern": rf"^(?=.*[A-Za-z0-9])[A-Za-z_*][A-Za-z0-9_*]*{END}",
}
INSIDE_PORT: Schema = {
    "type": "integer",
    "title": f"a port from {FIRST_PORT} to {LAST_PORT}",
    "minimum": FIRST_PORT,
    "maximum": LAST_PORT,
}
FLAG: Schema = {"type": "boolean", "title": "true or false"}

BIND: Schema = {
    "type": "object",
    "title": "an object with a source and a target",
    "properties": {
        "source": {**ANY_PATH, "description": "The path on the host."},
        "target": {**MOUNTED, "description": "Its name inside."},
        "writable": {**FLAG, "description": "Whether it can be written inside.", "default": False},
    },
    "required": ["source", "target"],
    "additionalProperties": False,
}
LAYOUT: Schema = {
    "type": ["object", "null"],
    "title": "an object with an outside and an inside root, or null",
    "description": "The working directory as it is told to whoever runs inside.",
    "properties": {
        "outside": {**ANY_PATH, "description": "Its path on the host."},
        "inside": {**ANY_PATH, "description": "What it is called inside."},
    },
    "required": ["outside", "inside"],
    "additionalProperties": False,
    "default": None,
}

# Of each bound what it counts, and whether null, for no bound, is a value.
BOUNDS = {
    "memory_mb": ("MiB of the whole sandbox.", True),
    "file_mb": ("MiB of each file.", True),
    "open_files": ("Files that each process holds open.", True),
    "cpus": ("Processors that the command runs on.", True),
    "cpu_s": ("Processor seconds of each process.", True),
    "pids": ("Processes and threads of the sandbox.", True),
    "wall_s": ("Seconds from ready to end.", True),
    "disk_mb": ("MiB of /tmp and of /dev/shm.", True),
    "tmp_mb": ("The same by its older name; disk_mb wins.", False),
    "output_bytes": ("Bytes kept of each output stream that Hermit reads; the front door's are the caller's.", False),
}


def _bound(name: str) -> Schema:
    counts, optional = BOUNDS[name]
    whole = name != "wall_s"
    kind = "integer" if whole else "number"
    title = f"a whole number from 1 to {MOST}" if whole else f"a number above 0 and up to {MOST}"
    return {
        "type": [kind, "null"] if optional else kind,
        "title": f"{title}, or null" if optional else title,
        "description": counts,
        **({"minimum": 1} if whole else {"exclusiveMinimum": 0}),
        "maximum": MOST,
        "default": getattr(Limits(), name),
    }


def _list(items: Schema, meaning: str) -> Schema:
    title = f"a list, each item {items['title']}"
    return {"type": "array", "title": title, "description": meaning, "items": items, "default": []}


def _choice(kind: type[Network | Enforce], default: Network | Enforce, meaning: str) -> Schema:
    values = [member.value for member in kind]
    title = " or ".join(map(repr, values))
    return {"type": "string", "title": title, "description": meaning, "enum": values, "default": default.value}


def _fields() -> Schema:
    closed = Sandbox()
    return {
        "role": {
            "type": "string",
            "title": "a lower-case word of up to 32 letters, digits, '-' and '_'",
            "description": "Who runs inside; it names the record.",
            "pattern": f"^[a-z][a-z0-9_-]{{0,31}}{END}",
            "default": closed.role,
        },
        "read": _list(MOUNTED, "Shown read-only at their own location."),
        "write": _list(MOUNTED, "Shown writable at their own location."),
        "binds": _list(BIND, "Shown under a name of their own."),
        "cwd": {**ANY_PATH, "description": "The working directory inside.", "default": closed.cwd},
        "network": _choice(Network, closed.network, "Loopback only, or the network of the place."),
        "allowed_hosts": _list(HOST, "Hosts that an isolated network reaches through a proxy on its loopback."),
        "ports": {
            **_list(INSIDE_PORT, "Ports of an isolated network's loopback that lead to the same port of the host's."),
            "uniqueItems": True,
        },
        "sockets": {
            "type": "object",
            "title": "an object of ports, each with the path of a Unix socket of the host",
            "description": "Ports of an isolated network's loopback that lead to a Unix socket of the host each.",
            "propertyNames": {"title": f"a port from {FIRST_PORT} to {LAST_PORT}", "pattern": PORT},
            "additionalProperties": ANY_PATH,
            "default": {},
        },
        "env": {
            "type": "object",
            "title": "an object of texts",
            "description": "Variables that the sandbox sets.",
            "propertyNames": {"title": "the name of a variable", "pattern": f"^[A-Za-z_][A-Za-z0-9_]*{END}"},
            # A value may be a key: no message repeats it.
            "additionalProperties": {**TEXT, "writeOnly": True},
            "default": {},
        },
        "env_allow": _list(PASSED, "Variables of the caller that pass in."),
        "limits": {
            "type": "object",
            "title": "an object of bounds",
            "description": "Bounds of the command.",
            "properties": {name: _bound(name) for name in BOUNDS},
            "additionalProperties": False,
            "default": {},
        },
        "probes": _list(ANY_PATH, "Must not exist inside; each start proves it."),
        "framework": {**FLAG, "description": "Whether the hermit package is shown.", "default": closed.framework},
        "packages": _list(NAME, "Shown although they are not in a site directory."),
        "hide": _list(NAME, "Covered under every name they are shown by."),
        "layout": LAYOUT,
        "enforce": _choice(Enforce, closed.enforce, "What to do where no sandbox can be made: refuse, or say so."),
    }


# What only an isolated network has.
ISOLATED_ONLY = ("allowed_hosts", "ports", "sockets")


def schema() -> Schema:
    """The whole schema: the fields of :class:`Sandbox` by name, with ``forwards`` as ``ports`` and ``sockets``."""
    none = {name: {"maxItems": 0, "maxProperties": 0} for name in ISOLATED_ONLY}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "an object with the fields of a sandbox",
        "description": "A sandbox of Hermit: what is not named here does not exist inside.",
        "type": "object",
        "properties": _fields(),
        "additionalProperties": False,
        "if": {"properties": {"network": {"const": Network.OPEN.value}}, "required": ["network"]},
        "then": {"properties": none},
    }
