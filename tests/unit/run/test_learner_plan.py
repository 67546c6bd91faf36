"""What a config asks of a learner is refused before anything is created, each time with its key."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hermit.errors import ConfigError
from hermit.roles import secrets as run_secrets
from hermit.run import learner_plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.run.conftest import Run

METHOD = "from hermit.evolver import Evolver\nclass Learner(Evolver):\n    def step(self, ctx): ...\n"


@pytest.fixture
def planned(run: Run) -> Callable[..., learner_plan.LearnerPlan]:
    (run.root / "method").mkdir()
    (run.root / "method" / "learner.py").write_text(METHOD)
    (run.root / "method" / "evolver.yaml").write_text("class: learner.py:Learner\n")
    (run.root / "template").mkdir()
    (run.root / "books").mkdir()
    (run.root / "info").mkdir()
    (run.root / "tool.py").write_text("def look(argument): return 1\n")

    def make(*overrides: str, environ: dict[str, str] | None = None) -> learner_plan.LearnerPlan:
        config = run.config("evolver.name=./method", *overrides)
        secrets = run_secrets.of_run(config, config_file=str(run.root / "run.yaml"))
        variables = dict(os.environ) if environ is None else environ
        return learner_plan.planned(config, template=run.root / "template", secrets=secrets, environ=variables)

    return make


def test_a_plan_holds_the_method_its_models_its_tools_and_the_keys(planned: Callable[..., Any], run: Run) -> None:
    environ = {"OPENAI_API_KEY": "short", "OTHER_TOKEN": "x" * 20, "TINY_KEY": "y"}
    before = run.files()
    made = planned("model=openai/gpt", "evolver_access.tools=['tool.py:look']", environ=environ)
    assert made.method.directory == run.root / "method"
    assert [model.host for model in made.models] == ["api.openai.com"]
    assert [tool.name for tool in made.tools] == ["look"]
    assert {key.name for key in made.keys} == {"OPENAI_API_KEY", "OTHER_TOKEN"}
    assert run.files() == before


@pytest.mark.parametrize(
    ("overrides", "where", "words"),
    [
        (["evolver.name=null"], "evolver.name", "needs a learner"),
        (["model=openai/gpt"], "evolver.params", "OPENAI_API_KEY is not set"),
        (["evolver.params={model: nope/x}"], "evolver.params.model", "there is no backend nope"),
        (["sandbox.evolver.env=[ABSENT_VARIABLE]"], "sandbox.evolver.env", "ABSENT_VARIABLE is not set"),
        (["sandbox.evolver.allowed_hosts=['1.2.3']"], "sandbox.evolver.allowed_hosts", "no host pattern"),
        (["evolver_access.environment=[absent]"], "evolver_access.environment", "does not exist"),
        (["evolver_access.environment=[data]"], "evolver_access.environment", "data.tasks"),
        (["evolver_access.environment=[judge.py]"], "evolver_access.environment", "judge.path"),
        (["evolver_access.environment=[runs/one]"], "evolver_access.environment", "trainer.output_dir"),
        (["evolver_access.environment=[books, template/books]"], "evolver_access.environment", "as"),
        (["evolver_access.tools=['absent.py:look']"], "evolver_access.tools", "is no file"),
        (["task_info=info"], "task_info", "holds no README.md"),
        (["task_info=absent"], "task_info", "does not exist"),
        (["evolver.name=./."], "evolver.name", "holds no evolver.yaml"),
    ],
)
def test_what_a_learner_cannot_be_given_is_refused_with_its_key(
    planned: Callable[..., Any], run: Run, overrides: list[str], where: str, words: str
) -> None:
    (run.root / "template" / "books").mkdir()
    (run.root / "runs" / "one").mkdir(parents=True)
    before = run.files()
    with pytest.raises(ConfigError) as refused:
        planned(*overrides, environ={"HOME": "/"})
    assert refused.value.where == where
    assert words in refused.value.what
    assert refused.value.cure
    assert run.files() == before


def test_a_method_in_the_directory_of_the_run_would_show_its_secrets(planned: Callable[..., Any], run: Run) -> None:
    (run.root / "evolver.yaml").write_text("class: hermit.evolver:CommandEvolver\n")
    with pytest.raises(ConfigError, match=r"data\.tasks"):
        planned(f"evolver.name={run.root}/")


def test_a_link_to_a_secret_is_refused_too(planned: Callable[..., Any], run: Run) -> None:
    Path(run.root / "harmless").symlink_to(run.root / "data")
    with pytest.raises(ConfigError, match=r"data\.tasks"):
        planned("evolver_access.environment=[harmless]")
