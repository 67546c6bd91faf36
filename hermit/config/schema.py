"""Every key of a run config with its type, its default and its meaning; the one place that gives a setting a default.

The models are built by :func:`hermit.config.load.load`, whose validation context, a :class:`hermit.config.values.Base`,
says against what the paths of a config are resolved. Built without one, a model keeps its paths as they are.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from hermit.config.values import (
    Amount,
    Baseline,
    Callable,
    Collected,
    ConfigPath,
    Count,
    Flag,
    Free,
    Host,
    Image,
    ModelReference,
    NameOrDirectory,
    Number,
    PythonName,
    ReferenceOrMapping,
    RunName,
    Text,
    VariablePattern,
    Whole,
)


def sections(model: type[BaseModel]) -> "dict[str, type[Section]]":
    """The keys of a model that are sections of their own, with their models."""
    kinds = {name: field.annotation for name, field in model.model_fields.items()}
    return {name: kind for name, kind in kinds.items() if isinstance(kind, type) and issubclass(kind, Section)}


class Section(BaseModel):
    """A part of the config: frozen, with no key but its own, and the same whether it is absent or empty."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _empty_means_absent(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        given = {key: item for key, item in value.items() if item is not None or cls._holds_null(key)}
        # A section that is not there is checked as an empty one: the key that misses in it is what a person must add.
        return {**{name: {} for name in sections(cls)}, **given}

    @classmethod
    def _holds_null(cls, key: str) -> bool:
        field = cls.model_fields.get(key)
        return field is None or type(None) in get_args(field.annotation)


def listed_hosts(hosts: tuple[str, ...], info: ValidationInfo, *, key: str) -> tuple[str, ...]:
    """The hosts of an allowlist.

    Raises:
        ValueError: The network is none that a list of hosts goes with.
    """
    network = info.data.get("network", "allowlist")
    if hosts and network != "allowlist":
        raise ValueError(f"hosts are only allowed with {key}: allowlist, not with {network}")
    return hosts


class DataConfig(Section):
    """The tasks and how they are split."""

    tasks: ConfigPath = Field(description="The task set: JSONL, each row an object with a unique `id` (or `task_id`).")
    train: ConfigPath | None = Field(
        default=None, description="The training split: one id per line, `#` starts a comment line."
    )
    val: ConfigPath | None = Field(default=None, description="The validation split, in the same form.")
    test: ConfigPath | None = Field(
        default=None, description="The test split, in the same form; no two splits share a task."
    )
    step_size: Count = Field(default=8, description="How many tasks a training step takes.")
    shuffle: Flag = Field(default=True, description="Whether each epoch puts the training split in a new order.")
    shuffle_seed: Whole = Field(default=0, description="The number those orders follow from.")


class AgentConfig(Section):
    """The acting agent."""

    name: Callable = Field(
        description="`react`, `codex`, `claude-code`, `harbor`, or a callable: a class or `run` function."
    )
    concurrency: Count = Field(default=4, description="How many acting calls run at once.")
    timeout_min: Amount | None = Field(
        default=None,
        description="Minutes after which a call is stopped and recorded as an error; it is told as `HA_DEADLINE`.",
    )
    params: Free = Field(
        default={}, description="What the agent gets, such as `model`, `prompt`, `tools`, `max_turns`."
    )


class ResourcesConfig(Section):
    """The bounds of an acting call, or of a judge; null leaves the sandbox its own default."""

    memory_mb: Count | None = Field(default=None, description="MiB the whole sandbox may hold.")
    file_mb: Count | None = Field(default=None, description="MiB each file may grow to.")
    cpus: Count | None = Field(default=None, description="Processors the sandbox runs on.")
    cpu_s: Count | None = Field(default=None, description="Processor seconds each process may use.")
    pids: Count | None = Field(default=None, description="Processes and threads the sandbox may hold at once.")
    open_files: Count | None = Field(default=None, description="Files each process may hold open.")
    disk_mb: Count | None = Field(default=None, description="MiB of `/tmp` and of `/dev/shm`.")


class JudgeConfig(Section):
    """The scorer, and where it runs."""

    path: ConfigPath = Field(description="The Python file that holds the scorer.")
    name: PythonName = Field(default="score", description="The scorer's name in that file.")
    tests: tuple[ConfigPath, ...] = Field(default=(), description="Paths shown to the judge alone.")
    collect: tuple[Collected, ...] = Field(
        default=(), description="What a `separate` judge gets: paths relative to the agent's work directory."
    )
    mode: Literal["host", "shared", "separate"] = Field(
        default="host",
        description="Where it runs: the host, the agent's own sandbox, or one with the collected paths only.",
    )
    timeout_min: Amount | None = Field(
        default=None, description="Minutes after which a judge is stopped, as a `judge_error`."
    )
    network: Literal["no-network", "allowlist", "public"] = Field(
        default="no-network", description="Which network the judge's sandbox has."
    )
    allowed_hosts: tuple[Host, ...] = Field(default=(), description="The hosts that its `network: allowlist` reaches.")
    resources: ResourcesConfig = Field(
        default=ResourcesConfig(), description="The judge's bounds; null is that of `environment.resources`."
    )

    @field_validator("allowed_hosts")
    @classmethod
    def _hosts_need_an_allowlist(cls, hosts: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        return listed_hosts(hosts, info, key="judge.network")

    @field_validator("mode")
    @classmethod
    def _a_separate_judge_needs_work(cls, mode: str, info: ValidationInfo) -> str:
        # Where `collect` itself is broken it is not among the data, and has its own complaint.
        if mode == "separate" and info.data.get("collect") == ():
            raise ValueError("a separate judge needs at least one path in judge.collect")
        return mode


class EvolverConfig(Section):
    """The learner."""

    name: NameOrDirectory | None = Field(
        default=None, description="A learner's name, or its directory (with a `/` in it)."
    )
    resume: Flag = Field(
        default=False,
        description="Whether a step is handed the `session` of the last one, so that the learner goes on from there.",
    )
    params: Free = Field(default={}, description="What the learner gets.")


class EvolverAccessConfig(Section):
    """What a learner may see beyond its workspace."""

    environment: tuple[ConfigPath, ...] = Field(default=(), description="Extra paths the learner may read.")
    tools: tuple[Callable, ...] = Field(default=(), description="Task tools the learner may call.")


class EnvironmentConfig(Section):
    """What the acting agent's sandbox shows, passes and allows."""

    read: tuple[ConfigPath, ...] = Field(default=(), description="Task paths shown read-only at their own location.")
    write: tuple[ConfigPath, ...] = Field(default=(), description="Task paths shown writable at their own location.")
    packages: tuple[Text, ...] = Field(
        default=(), description="Editable or PYTHONPATH distributions whose package is shown."
    )
    env: tuple[VariablePattern, ...] = Field(
        default=(), description="Names or patterns (`MWM_*`) of variables passed in."
    )
    network: Literal["no-network", "allowlist", "public"] = Field(
        default="no-network", description="Which network exists inside."
    )
    allowed_hosts: tuple[Host, ...] = Field(default=(), description="The hosts that `network: allowlist` reaches.")
    resources: ResourcesConfig = Field(default=ResourcesConfig(), description="The bounds of an acting call.")
    image: Image | None = Field(default=None, description="An image whose plain container the acting agent runs in.")
    runner: Literal["sandbox", "host"] = Field(default="sandbox", description="`host`: the task isolates its own code.")

    @field_validator("allowed_hosts")
    @classmethod
    def _hosts_need_an_allowlist(cls, hosts: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        return listed_hosts(hosts, info, key="environment.network")


class SandboxEvolverConfig(Section):
    """What the learner's sandbox allows beyond its models."""

    allowed_hosts: tuple[Host, ...] = Field(default=(), description="Extra hosts the learner reaches.")
    env: tuple[VariablePattern, ...] = Field(default=(), description="Extra variables passed to the learner.")


class SandboxConfig(Section):
    """Whether and how strictly things are confined."""

    enabled: Flag = Field(
        default=True, description="False: nothing is confined, every judge runs on the host, recorded."
    )
    enforce: Literal["required", "best_effort"] = Field(
        default="required", description="Where no sandbox can be made: refuse, or run unconfined and record it."
    )
    hide: tuple[Text, ...] = Field(
        default=(), description="Modules or packages covered in every sandbox but the judge's."
    )
    evolver: SandboxEvolverConfig = Field(default=SandboxEvolverConfig(), description="The learner's extras.")


class ContainerConfig(Section):
    """Where sandboxes are launched."""

    runtime: Literal["auto", "image", "local", "whole"] = Field(
        default="auto",
        description="In an image, on this machine, in an image where an engine answers; or the whole command in one.",
    )
    image: Image = Field(default="hermit", description="The image in which sandboxes are launched.")
    judge_image: Image = Field(default="hermit-judge", description="The image in which judges' sandboxes are launched.")
    pull: Literal["never", "missing", "always"] = Field(
        default="never", description="When these images are fetched from a registry: never, where missing, always."
    )


class BudgetConfig(Section):
    """What a training run may use up."""

    usd: Amount | None = Field(default=None, description="US dollars a training run may cost.")
    tokens: Count | None = Field(default=None, description="Tokens a training run may use.")
    hours: Amount | None = Field(default=None, description="Hours a training run may take.")


class SaveFreqConfig(Section):
    """How often a training run leaves a checkpoint."""

    steps: Count | None = Field(default=None, description="A checkpoint every so many steps.")
    epochs: Count | None = Field(default=1, description="A checkpoint every so many epochs.")


class TrainerConfig(Section):
    """The run: its identity, its places and its bounds."""

    run_name: RunName | None = Field(default=None, description="The run's name; derived if null.")
    output_dir: ConfigPath = Field(
        default=Path("runs"), validate_default=True, description="The directory that holds runs."
    )
    tree_dir: ConfigPath | None = Field(
        default=None, description="The adapter's tree; null: `<output_dir>/trees/<template id>`."
    )
    epochs: Count = Field(default=1, description="How often training goes through the training split.")
    budget: BudgetConfig = Field(default=BudgetConfig(), description="What a training run may use up.")
    call_timeout_min: Amount | None = Field(default=60.0, description="Minutes a learner's call may take.")
    resume_mode: Literal["auto", "never", "required"] = Field(
        default="auto",
        description="Whether a training run that has begun goes on: `auto` begins or goes on, `never` only begins, `required` only goes on.",
    )
    save_freq: SaveFreqConfig = Field(default=SaveFreqConfig(), description="How often a checkpoint is kept.")
    allow_early_stop: Flag = Field(default=False, description="Whether the learner may end the run.")


class EvalConfig(Section):
    """How an evaluation is made."""

    repeats: Count = Field(default=1, description="How many attempts each test task gets.")


class CheckConfig(Section):
    """What `hermit check` tries the tasks and the judge with."""

    reference: Baseline | None = Field(
        default=None, description="What must pass: an agent as in `agent.name`, or a directory of solutions."
    )
    empty: Baseline | None = Field(default=None, description="What must fail, in the same form.")
    read: tuple[ConfigPath, ...] = Field(
        default=(), description="Paths shown to the reference alone; every other sandbox of the run proves them absent."
    )
    tasks: Count = Field(default=3, description="How many tasks both attempt, from the first on.")
    passes: Number = Field(default=1.0, description="The least score that passes.")


class RunConfig(Section):
    """One run, as its config, the defaults and the command line ask for it; its paths are absolute when loaded."""

    data: DataConfig
    task_info: ConfigPath | None = Field(
        default=None, description="A directory with a `README.md`, shown to the learner."
    )
    agent: AgentConfig
    judge: JudgeConfig
    template: NameOrDirectory | None = Field(
        default=None, description="The adapter's template: `id[@version]`, or a directory."
    )
    start_from: ConfigPath | None = Field(
        default=None, description="A directory taken as first version instead of its root."
    )
    evolver: EvolverConfig = EvolverConfig()
    evolver_access: EvolverAccessConfig = EvolverAccessConfig()
    environment: EnvironmentConfig = EnvironmentConfig()
    sandbox: SandboxConfig = SandboxConfig()
    container: ContainerConfig = ContainerConfig()
    model: ModelReference | None = Field(default=None, description="The model of the run, `<backend>/<model id>`.")
    llm: ReferenceOrMapping | None = Field(
        default=None, description="The model behind `llm` calls, or a mapping such as `{cli: codex}`."
    )
    backends: Free = Field(default={}, description="Backends added to, or changed from, the ones that come with it.")
    trainer: TrainerConfig = TrainerConfig()
    eval: EvalConfig = EvalConfig()
    check: CheckConfig = CheckConfig()


def known_keys(model: type[BaseModel] = RunConfig, *, above: str = "") -> Iterator[str]:
    """Every key in its dotted form, sections before what they hold."""
    inner = sections(model)
    for name in model.model_fields:
        yield above + name
        if name in inner:
            yield from known_keys(inner[name], above=f"{above}{name}.")


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a run config, for editors and other programs."""
    schema = RunConfig.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def reference() -> str:
    """The table of every key with its type, default and meaning, in Markdown."""
    schema = RunConfig.model_json_schema()
    lines = ["| key | type, default | meaning |", "|---|---|---|"]
    lines += [f"| `{key}` | {kind} | {meaning} |" for key, kind, meaning in _rows(schema, schema["$defs"], above="")]
    return "\n".join(lines) + "\n"


def _rows(model: Mapping[str, Any], models: Mapping[str, Any], *, above: str) -> Iterator[tuple[str, str, str]]:
    for name, field in model["properties"].items():
        if "$ref" in field:
            yield from _rows(models[field["$ref"].rpartition("/")[2]], models, above=f"{above}{name}.")
            continue
        default = "required" if name in model.get("required", ()) else _spelled(field.get("default"))
        yield above + name, f"{_kind(field)}, {default}", field["description"]


def _spelled(value: object) -> str:
    empty = {"()": "empty", "[]": "empty", "{}": "empty", "None": "null"}
    return empty.get(str(value), f"`{str(value).lower() if isinstance(value, bool) else value}`")


def _kind(field: Mapping[str, Any]) -> str:
    if "anyOf" in field:
        return " or ".join(_kind(option) for option in field["anyOf"] if option != {"type": "null"})
    if "enum" in field:
        return " \\| ".join(f"`{value}`" for value in field["enum"])
    if field["type"] == "array":
        return f"list of {_kind(field['items'])}"
    names = {"string": "text", "integer": "int", "number": "float", "boolean": "bool", "object": "mapping"}
    return "path" if field.get("format") == "path" else names[field["type"]]
