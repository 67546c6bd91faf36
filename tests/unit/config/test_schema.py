from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hermit.config.load import load
from hermit.config.moved import MOVED
from hermit.config.schema import RunConfig, json_schema, known_keys, reference, sections
from hermit.errors import ConfigError

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "config.md"


def test_the_reference_page_holds_the_table_of_the_schema_as_it_is_now():
    assert f"\n\n{reference()}\n" in PAGE.read_text(encoding="utf-8")


def test_the_reference_table_has_one_row_for_every_key_that_is_no_section():
    leaves = [key for key in known_keys() if not any(other.startswith(f"{key}.") for other in known_keys())]
    assert re.findall(r"^\| `([^`]+)` \|", reference(), re.MULTILINE) == leaves


def test_the_reference_page_holds_every_superseded_key_with_its_homes():
    rows = dict(re.findall(r"^\| `([^`]+)` \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    for row in MOVED:
        expected = ", ".join(f"`{home}`" for home in row.homes) or row.reason
        assert rows[row.key] == expected


def test_the_example_of_the_reference_page_gives_exactly_the_errors_it_shows(tmp_path, monkeypatch):
    page = PAGE.read_text(encoding="utf-8")
    broken, shown = re.search(r"```yaml\n(data:.*?)```.*?```text\n(.*?)```", page, re.DOTALL).groups()
    monkeypatch.chdir(tmp_path)
    Path("run.yaml").write_text(broken, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load(Path("run.yaml"), ["trainer.epochs=none"], environ={})
    assert f"{caught.value}\n" == shown


def test_every_key_is_described_in_one_sentence():
    def descriptions(model, above=""):
        inner = sections(model)
        for name, field in model.model_fields.items():
            if name in inner:
                yield from descriptions(inner[name], f"{above}{name}.")
            else:
                yield above + name, field.description

    for key, text in descriptions(RunConfig):
        assert text, key
        assert text.endswith("."), key
        assert "|" not in text, key


def test_the_json_schema_is_json_and_knows_every_key():
    schema = json_schema()
    assert schema["$schema"].startswith("https://json-schema.org/")
    text = json.dumps(schema)
    assert all(f'"{key.rpartition(".")[2]}"' in text for key in known_keys())
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) == {"data", "agent", "judge"}


def test_a_section_cannot_be_changed_and_refuses_keys_it_does_not_have():
    def subsections(model):
        for section in sections(model).values():
            yield section
            yield from subsections(section)

    for section in [RunConfig, *subsections(RunConfig)]:
        assert section.model_config["frozen"] is True, section
        assert section.model_config["extra"] == "forbid", section


def test_a_config_built_without_a_file_keeps_its_paths_as_they_are():
    config = RunConfig.model_validate(
        {"data": {"tasks": "t"}, "agent": {"name": "a.py:run"}, "judge": {"path": "/j.py"}}
    )
    assert config.data.tasks == Path("t")
    assert config.agent.name == "a.py:run"
    assert config.trainer.output_dir == Path("runs")
