"""Where a model is, which variable holds its key, and what a sandbox opens for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hermit.domain.network import Forward
from hermit.errors import ConfigError
from hermit.net.hosts import HostPattern
from hermit.roles import models

if TYPE_CHECKING:
    from collections.abc import Callable


def of(config: Any, params: dict[str, Any], **environ: str) -> tuple[models.Model, ...]:
    return models.of_learner(config, params, environ=environ)


@pytest.mark.parametrize("backend", models.BACKENDS, ids=lambda backend: backend.name)
def test_each_backend_has_a_host_or_a_port_of_this_machine_and_a_key(backend: models.Backend) -> None:
    model = models.Model(f"{backend.name}/m", backend)
    assert bool(model.host) is not bool(model.forward)
    assert bool(model.forward) is backend.local
    assert backend.key_variable == f"{backend.name.upper()}_API_KEY"
    assert backend.url_variable == f"{backend.name.upper()}_BASE_URL"
    if model.host:
        HostPattern.parse(model.host)


def test_a_learners_models_are_those_of_its_parameters_or_else_the_runs(config: Callable[..., Any]) -> None:
    loaded = config("model=openai/gpt")
    assert [model.reference for model in of(loaded, {})] == ["openai/gpt"]
    params = {
        "model": "anthropic/c",
        "roles": {"judge_model": "deepseek/d", "note": "openai/none"},
        "models": {"a": "vllm/x", "b": {"model": "fireworks/accounts/y"}},
        "other_models": ["anthropic/c", "ollama/z"],
        "model_name": "openai/none",
    }
    found = [model.reference for model in of(loaded, params)]
    assert found == ["anthropic/c", "deepseek/d", "vllm/x", "fireworks/accounts/y", "ollama/z"]
    assert of(config(), {}) == ()


def test_a_variable_moves_a_backend(config: Callable[..., Any]) -> None:
    (model,) = of(config(), {"model": "openai/gpt"}, OPENAI_BASE_URL="https://proxy.example.com:8443/v1")
    assert (model.host, model.forward) == ("proxy.example.com:8443", None)
    (model,) = of(config(), {"model": "openai/gpt"}, OPENAI_BASE_URL="http://localhost:9000/v1")
    assert (model.host, model.forward) == ("", Forward(9000))


def test_the_config_adds_and_changes_backends(config: Callable[..., Any]) -> None:
    loaded = config(
        "backends={own: {base_url: 'https://m.example.org/v1', dialects: [messages]}, openai: {key_variable: OTHER_KEY}}"
    )
    own, other = of(loaded, {"models": ["own/a", "openai/b"]})
    assert (own.host, own.backend.key_variable, own.backend.dialects) == ("m.example.org", "OWN_API_KEY", ("messages",))
    assert (other.host, other.backend.key_variable) == ("api.openai.com", "OTHER_KEY")


@pytest.mark.parametrize(
    ("overrides", "params", "where", "words"),
    [
        ([], {"model": "gpt"}, "evolver.params.model", "names no model"),
        ([], {"model": "opnai/gpt"}, "evolver.params.model", "the nearest is openai"),
        ([], {"a": {"b_model": "x y/z"}}, "evolver.params.a.b_model", "names no model"),
        (["backends={own: 7}"], {}, "backends.own", "is a mapping"),
        (["backends={Own: {}}"], {}, "backends.Own", "name in lower case"),
        (["backends={own: {url: x}}"], {}, "backends.own", "the nearest is"),
        (["backends={own: {}}"], {}, "backends.own.base_url", "expected a URL"),
        (["backends={own: {base_url: 'ftp://x'}}"], {}, "backends.own.base_url", "expected a URL"),
        (["backends={own: {base_url: 'https://user:word@x'}}"], {}, "backends.own.base_url", "without a user"),
        (["backends={own: {base_url: 'https://x:99999'}}"], {}, "backends.own.base_url", "expected a URL"),
        (["backends={own: {base_url: 'http://localhost/v1'}}"], {}, "backends.own.base_url", "from 1024 on"),
        (["backends={openai: {key_variable: 'a b'}}"], {}, "backends.openai.key_variable", "name of a variable"),
        (["backends={openai: {dialects: [talk]}}"], {}, "backends.openai.dialects", "expected some of"),
    ],
)  # fmt: skip
def test_what_is_no_model_or_no_backend_is_refused_with_its_key(
    config: Callable[..., Any], overrides: list[str], params: dict[str, Any], where: str, words: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        of(config(*overrides), params)
    assert (refused.value.where, words in str(refused.value)) == (where, True), str(refused.value)


def test_a_model_elsewhere_needs_its_key_and_a_server_of_ones_own_does_not(config: Callable[..., Any]) -> None:
    found = of(config(), {"models": ["vllm/a", "openai/b"]})
    with pytest.raises(ConfigError, match="OPENAI_API_KEY is not set"):
        models.refuse_keyless(found, {"OPENAI_API_KEY": ""})
    models.refuse_keyless(found, {"OPENAI_API_KEY": "k"})
