"""Where a model is and which variable holds its key: from a reference ``<backend>/<model id>``. Pure."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hermit.domain.network import FIRST_PORT, Forward
from hermit.domain.sandbox import VARIABLE
from hermit.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hermit.config.schema import RunConfig

DIALECTS = ("chat", "responses", "messages")
FIELDS = ("base_url", "key_variable", "dialects", "prices")
DEFAULT_PORTS = {"http": 80, "https": 443}
LOOPBACK = ("127.0.0.1", "localhost")
# A parameter of a learner that names a model: `model`, `judge_model`, or `models` with several.
NAMES_ONE = re.compile(r"(.*_)?model\Z")
NAMES_SEVERAL = re.compile(r"(.*_)?models\Z")
REFERENCE = re.compile(r"([a-z][a-z0-9_-]*)/(\S.*)\Z")


@dataclass(frozen=True)
class Backend:
    """A service that models are behind.

    Args:
        name: What a reference begins with.
        base_url: Where it is.
        key_variable: The variable that holds its key.
        dialects: How it is spoken to: ``chat``, ``responses``, ``messages``.
        local: Whether it is a server of one's own, which may do without a key.
    """

    name: str
    base_url: str
    key_variable: str
    dialects: tuple[str, ...] = ("chat",)
    local: bool = False

    @property
    def url_variable(self) -> str:
        """The variable that moves it, and by which programs are told where it is."""
        return f"{self.name.upper().replace('-', '_')}_BASE_URL"


@dataclass(frozen=True)
class Model:
    """A model and what a sandbox needs to reach it.

    Args:
        reference: As the config names it.
        backend: Its backend, where the host's variables put it.
    """

    reference: str
    backend: Backend

    @property
    def host(self) -> str:
        """The host of an allowlist, with a port where it is not the scheme's own; empty for a server of this machine."""
        place = urlsplit(self.backend.base_url)
        if place.hostname in LOOPBACK:
            return ""
        host = f"[{place.hostname}]" if ":" in (place.hostname or "") else f"{place.hostname}"
        return host if place.port in (None, DEFAULT_PORTS[place.scheme]) else f"{host}:{place.port}"

    @property
    def forward(self) -> Forward | None:
        """The port of a server of this machine; ``None`` for a host elsewhere."""
        place = urlsplit(self.backend.base_url)
        return None if self.host else Forward(place.port or DEFAULT_PORTS[place.scheme])


BACKENDS = (
    Backend("fireworks", "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    Backend("openai", "https://api.openai.com/v1", "OPENAI_API_KEY", ("chat", "responses")),
    Backend("anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY", ("messages",)),
    Backend("deepseek", "https://api.deepseek.com", "DEEPSEEK_API_KEY"),
    Backend("vllm", "http://127.0.0.1:8000/v1", "VLLM_API_KEY", ("chat", "responses"), local=True),
    Backend("sglang", "http://127.0.0.1:30000/v1", "SGLANG_API_KEY", local=True),
    Backend("ollama", "http://127.0.0.1:11434/v1", "OLLAMA_API_KEY", local=True),
)


def of_learner(config: RunConfig, params: Mapping[str, Any], *, environ: Mapping[str, str]) -> tuple[Model, ...]:
    """The models that a learner and its roles call: those its parameters name, or else the run's ``model``.

    Args:
        config: The run's config.
        params: The learner's parameters, merged.
        environ: The host's variables, of which ``<NAME>_BASE_URL`` moves a backend.

    Raises:
        ConfigError: A reference names no backend, or a backend is described in another way than it can be.
    """
    known = backends(config.backends, environ=environ)
    named = [(f"evolver.params.{key}", reference) for key, reference in references(params)]
    if not named and config.model is not None:
        named = [("model", config.model)]
    return tuple({reference: model(reference, known, key=key) for key, reference in named}.values())


def references(params: Mapping[str, Any], *, above: str = "") -> Iterator[tuple[str, str]]:
    """Every reference to a model among free parameters, with its key."""
    for name, value in params.items():
        key = f"{above}{name}"
        if isinstance(value, str) and NAMES_ONE.match(str(name)):
            yield key, value
        elif NAMES_SEVERAL.match(str(name)) and isinstance(value, dict | list | tuple):
            inner = value.items() if isinstance(value, dict) else enumerate(value)
            for place, item in inner:
                if isinstance(item, str):
                    yield f"{key}.{place}", item
                elif isinstance(item, dict):
                    yield from references(item, above=f"{key}.{place}.")
        elif isinstance(value, dict):
            yield from references(value, above=f"{key}.")


def model(reference: str, known: Mapping[str, Backend], *, key: str) -> Model:
    """The model of a reference.

    Raises:
        ConfigError: It is none, or its backend is not known.
    """
    found = REFERENCE.match(reference)
    if found is None:
        what = f"{reference!r:.80} names no model: expected <backend>/<model id>, such as openai/gpt-5"
        raise ConfigError(what, where=key, cure=f"the backends are {', '.join(known)}")
    backend = known.get(found[1])
    if backend is None:
        near = difflib.get_close_matches(found[1], known, n=1, cutoff=0)[0]
        what = f"there is no backend {found[1]}; the nearest is {near}"
        raise ConfigError(what, where=key, cure=f"name one of {', '.join(known)}, or add it to `backends`")
    return Model(reference, backend)


def backends(given: Mapping[str, Any], *, environ: Mapping[str, str]) -> dict[str, Backend]:
    """Every backend by its name: the ones that come with Hermit, those of the config over them, each where it is now.

    Raises:
        ConfigError: One is described in another way than it can be.
    """
    found = {backend.name: backend for backend in BACKENDS}
    for name, said in given.items():
        where = f"backends.{name}"
        if not re.fullmatch(r"[a-z][a-z0-9_-]*", str(name)) or not isinstance(said, dict):
            what = "a backend has a name in lower case, and is a mapping"
            raise ConfigError(what, where=where, cure="write {base_url: https://..., key_variable: NAME_API_KEY}")
        found[name] = _described(name, said, found.get(name), where=where)
    moved = {name: environ.get(backend.url_variable, "") for name, backend in found.items()}
    for name, url in moved.items():
        if url:
            _check_url(url, where=f"the variable {found[name].url_variable}")
            found[name] = replace(found[name], base_url=url)
    return found


def _described(name: str, said: Mapping[str, Any], before: Backend | None, *, where: str) -> Backend:
    for key in said:
        if key not in FIELDS:
            near = difflib.get_close_matches(str(key), FIELDS, n=1, cutoff=0)[0]
            raise ConfigError(f"{key} is not a known key; the nearest is {near}", where=where, cure="correct the key")
    before = before or Backend(name, "", f"{name.upper().replace('-', '_')}_API_KEY", local=True)
    url, key_variable = said.get("base_url", before.base_url), said.get("key_variable", before.key_variable)
    dialects = said.get("dialects", list(before.dialects))
    _check_url(url, where=f"{where}.base_url")
    if not isinstance(key_variable, str) or not VARIABLE.match(key_variable):
        raise ConfigError("expected the name of a variable", where=f"{where}.key_variable", cure="write NAME_API_KEY")
    if not isinstance(dialects, list) or not dialects or not set(map(str, dialects)) <= set(DIALECTS):
        raise ConfigError(f"expected some of {', '.join(DIALECTS)}", where=f"{where}.dialects", cure="correct the list")
    return replace(before, base_url=url, key_variable=key_variable, dialects=tuple(dialects))


def _check_url(url: Any, *, where: str) -> None:
    """Refuses what leads nowhere, or somewhere that two readers could take differently."""
    try:
        place = urlsplit(url) if isinstance(url, str) else None
        port = (place.port or DEFAULT_PORTS.get(place.scheme, 0)) if place else 0
        right = place is not None and place.scheme in DEFAULT_PORTS and bool(place.hostname) and "@" not in place.netloc
    except ValueError:
        right, port, place = False, 0, None
    if not right or not port:
        raise ConfigError(
            "expected a URL such as https://api.example.com/v1, without a user", where=where, cure="correct it"
        )
    if place is not None and place.hostname in LOOPBACK and port < FIRST_PORT:
        what = f"a server of this machine listens at a port from {FIRST_PORT} on, where a sandbox can reach it"
        raise ConfigError(what, where=where, cure="name the port in the URL, as in http://127.0.0.1:8000/v1")


def refuse_keyless(models: tuple[Model, ...], environ: Mapping[str, str]) -> None:
    """Refuses a model whose key is not set; a server of one's own may do without.

    Raises:
        ConfigError: The first such model.
    """
    for each in models:
        variable = each.backend.key_variable
        if not each.backend.local and not environ.get(variable):
            what = f"the variable {variable} is not set, and {each.reference} needs it"
            raise ConfigError(what, where="evolver.params", cure=f"export {variable}, or name another model")
