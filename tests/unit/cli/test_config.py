"""`hermit config`: what a run config may say, and what one says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermit.config.schema import known_keys

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TYPES = {"object", "array", "string", "integer", "number", "boolean", "null"}


def dotted(model: dict[str, Any], models: dict[str, Any], *, above: str = "") -> set[str]:
    """Every key a schema knows."""
    found = set()
    for name, field in model["properties"].items():
        found.add(above + name)
        if "$ref" in field:
            found |= dotted(models[field["$ref"].rpartition("/")[2]], models, above=f"{above}{name}.")
    return found


def walked(value: Any) -> list[dict[str, Any]]:
    """Every schema inside a schema."""
    if isinstance(value, list):
        return [inner for item in value for inner in walked(item)]
    if not isinstance(value, dict):
        return []
    return [value, *(inner for item in value.values() for inner in walked(item))]


def test_the_schema_is_a_json_schema_of_every_key(hermit: Callable[..., Any]) -> None:
    said = hermit("config", "schema")
    schema = said.document
    assert (said.code, said.err) == (0, "")
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert dotted(schema, schema["$defs"]) == set(known_keys())
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) == {"data", "agent", "judge"}
    for inner in walked(schema):
        if isinstance(inner.get("type"), str):
            assert inner["type"] in TYPES
        if isinstance(inner.get("$ref"), str):
            assert inner["$ref"].rpartition("/")[2] in schema["$defs"]


def test_show_prints_the_config_as_it_is_read(hermit: Callable[..., Any], config: Path) -> None:
    said = hermit("config", "show", "--config", str(config), "agent.concurrency=7")
    assert (said.code, said.err) == (0, "")
    assert said.document["agent"]["concurrency"] == 7
    assert said.document["data"]["tasks"] == f"{config.parent}/tasks.jsonl"
    assert said.document["trainer"]["output_dir"] == f"{config.parent}/runs"
    assert said.document["judge"]["mode"] == "host"


def test_show_of_a_wrong_config_is_exit_2_with_every_fault(hermit: Callable[..., Any], config: Path) -> None:
    said = hermit("config", "show", "--config", str(config), "agent.concurency=7", "judge.mode=moon")
    assert (said.code, said.out) == (2, "")
    assert "agent.concurrency" in said.err
    assert "judge.mode" in said.err


def test_show_creates_nothing(hermit: Callable[..., Any], config: Path) -> None:
    before = sorted(config.parent.rglob("*"))
    hermit("config", "show", "--config", str(config))
    assert sorted(config.parent.rglob("*")) == before
