from __future__ import annotations

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermit.config.moved import MOVED
from hermit.config.schema import RunConfig, known_keys, sections
from hermit.errors import ConfigError

MINIMAL = """\
data:
  tasks: tasks.jsonl
agent:
  name: react
judge:
  path: judge.py
"""

SHARED_DIRECTORY = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)


def test_a_config_of_three_keys_is_enough_and_the_rest_are_defaults(read, tmp_path):
    config = read(MINIMAL)
    assert config.agent.name == "react"
    assert config.agent.concurrency == 4
    assert config.environment.network == "no-network"
    assert config.sandbox.enforce == "required"
    assert config.container.runtime == "auto"
    assert config.trainer.save_freq.epochs == 1
    assert config.trainer.output_dir == tmp_path / "runs"


def test_the_yaml_overrides_a_default_and_the_command_line_overrides_the_yaml(read):
    text = MINIMAL + "eval:\n  repeats: 2\n"
    assert read(text).eval.repeats == 2
    assert read(text, "eval.repeats=3").eval.repeats == 3
    assert read(text, "eval.repeats=3", "eval.repeats=4").eval.repeats == 4


def test_an_override_is_read_as_yaml_and_takes_the_place_of_the_key_whole(read):
    text = MINIMAL + "environment:\n  env: [A, B]\n"
    config = read(text, "environment.env=[C_*]", "agent.params={model: openai/x, deep: {n: 1}}", "agent.params.n=2")
    assert config.environment.env == ("C_*",)
    assert config.agent.params == {"model": "openai/x", "deep": {"n": 1}, "n": 2}


def test_an_override_can_supply_everything_an_empty_file_lacks(read, tmp_path):
    config = read("", "data.tasks=t.jsonl", "agent.name=react", "judge.path=j.py")
    assert config.data.tasks == tmp_path / "t.jsonl"


def test_absent_and_empty_mean_the_same(read):
    text = MINIMAL + "environment:\nsandbox: {}\neval:\n  repeats:\ntrainer: {budget: , epochs: null}\n"
    assert read(text) == read(MINIMAL)


def test_null_is_kept_where_it_is_a_value(read):
    config = read(MINIMAL + "trainer: {call_timeout_min: null, save_freq: {epochs: null}}\n")
    assert config.trainer.call_timeout_min is None
    assert config.trainer.save_freq.epochs is None


def test_a_config_is_frozen_and_holds_tuples(read, tmp_path):
    config = read(MINIMAL + "environment: {read: [a, b]}\n")
    assert config.environment.read == (tmp_path / "a", tmp_path / "b")
    with pytest.raises(ValueError, match="frozen"):
        config.environment.network = "public"


@pytest.mark.parametrize("section", ["agent.params", "evolver.params", "llm", "backends"])
def test_a_free_section_takes_any_key(read, section):
    config = read(MINIMAL, f"{section}.surprise.inner=[1, two]")
    value = config
    for part in section.split("."):
        value = getattr(value, part)
    assert value == {"surprise": {"inner": [1, "two"]}}


def test_an_unknown_key_is_named_with_its_line_and_the_nearest_known_key(refused):
    message = refused(MINIMAL.replace("  name: react\n", "  name: react\n  concurency: 3\n"))
    assert message.startswith(
        "run.yaml:5: agent.concurency is not a known key; the nearest is agent.concurrency\n  -> "
    )


def test_a_key_in_the_wrong_section_is_led_to_the_right_one(refused):
    assert "the nearest is agent.concurrency\n" in refused(MINIMAL + "concurrency: 3\n")
    assert "the nearest is environment.network\n" in refused(MINIMAL + "container: {network: public}\n")


def test_an_unknown_key_of_the_command_line_names_the_override(refused):
    message = refused(MINIMAL, "agent.concurency=3")
    assert message.startswith(
        "command line: agent.concurency=3: agent.concurency is not a known key; the nearest is agent."
    )


def test_every_error_is_reported_in_the_order_of_the_lines_and_the_command_line_last(refused):
    text = MINIMAL + "zebra: 1\neval: {repeats: 0}\nsandbox: {audit: true}\nenvironment: {network: open}\n"
    lines = refused(text, "agent.concurrency=many", "nonsense").splitlines()
    assert lines[0] == "run.yaml: 6 settings are wrong"
    places = [line.strip().split(": ")[0] for line in lines[1:-1]]
    assert places == ["run.yaml:7", "run.yaml:8", "run.yaml:9", "run.yaml:10", "command line", "command line"]
    assert lines[-1].startswith("  -> ")


@pytest.mark.parametrize("row", MOVED, ids=lambda row: row.key)
def test_a_superseded_key_is_refused_with_its_new_home_and_no_other_complaint(refused, row):
    key = row.key.replace("*", "task")
    message = refused(MINIMAL, f"{key}={{a: 1}}")
    assert message.startswith(f"command line: {key}={{a: 1}}: {row.key} ")
    assert all(home in message for home in row.homes)
    assert "known key" not in message
    assert "settings are wrong" not in message


@pytest.mark.parametrize("row", MOVED, ids=lambda row: row.key)
def test_a_superseded_key_leads_to_keys_that_exist(row):
    known = set(known_keys())
    assert row.homes or row.reason
    assert all(home.removesuffix(".*") in known for home in row.homes)


def test_a_superseded_key_of_the_file_is_named_with_its_line(refused):
    message = refused(MINIMAL + "sandbox:\n  enabled: true\n  allow: [example.org]\n")
    assert message.startswith("run.yaml:9: sandbox.allow moved to environment.network, environment.allowed_hosts")


def test_a_section_of_profiles_is_refused_even_when_it_is_empty(refused):
    assert "run.yaml:7: sandbox.profiles.* moved to environment.*\n" in refused(MINIMAL + "sandbox: {profiles: }\n")


def test_a_learners_own_isolation_is_refused_and_that_of_llm_is_not(read, refused):
    assert "evolver.params.isolation is gone" in refused(MINIMAL, "evolver.params={isolation: none}")
    assert read(MINIMAL, "llm={cli: codex, isolation: container}").llm["isolation"] == "container"


@pytest.mark.parametrize("key", ["data.tasks", "agent.name", "judge.path"])
def test_a_required_key_that_misses_is_named_whether_or_not_its_section_is_there(refused, key):
    section = key.partition(".")[0]
    document = yaml.safe_load(MINIMAL)
    assert f"{key} is required and missing" in refused(yaml.dump({**document, section: {}}))
    del document[section]
    assert f"{key} is required and missing" in refused(yaml.dump(document))


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.dates()


VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


def _nested(key: str, value: object) -> dict[str, object]:
    head, _, rest = key.partition(".")
    return {head: _nested(rest, value) if rest else value}


DOCUMENTS = st.one_of(
    VALUES,
    st.dictionaries(st.sampled_from(sorted(RunConfig.model_fields)), VALUES, max_size=5),
    st.builds(_nested, st.sampled_from(sorted(known_keys())), VALUES),
)


@SHARED_DIRECTORY
@given(DOCUMENTS)
def test_any_yaml_document_is_a_config_or_a_config_error(read, document):
    try:
        read(yaml.dump(document, allow_unicode=True).encode(errors="surrogatepass"))
    except ConfigError as error:
        assert len(str(error).splitlines()) >= 2  # noqa: PT017 - what is wrong, and what to do


@SHARED_DIRECTORY
@given(st.lists(st.sampled_from(sorted(known_keys())) | st.text(max_size=10), max_size=2), VALUES)
def test_any_override_is_taken_or_a_config_error(read, keys, value):
    text = yaml.dump(value, allow_unicode=True, default_flow_style=True)
    try:
        read(MINIMAL, *(f"{key}={text}" for key in keys))
    except ConfigError as error:
        assert "command line: " in str(error)  # noqa: PT017 - the file itself is right


@SHARED_DIRECTORY
@given(st.sampled_from(sorted(known_keys())), st.integers(1, 9))
def test_a_known_key_is_never_called_unknown(read, key, number):
    inner: object = RunConfig
    for part in key.split("."):
        inner = sections(inner).get(part)  # type: ignore[arg-type]
        if inner is None:
            break
    value = "{}" if inner is not None else str(number)
    try:
        read(MINIMAL, f"{key}={value}")
    except ConfigError as error:
        assert "known key" not in str(error)  # noqa: PT017 - a wrong type is another matter
