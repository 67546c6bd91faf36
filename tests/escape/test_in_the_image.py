"""Every attack that fails here fails in the image too."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from dataclasses import asdict

import pytest

from .in_image import HERE, NOT_IN_THE_IMAGE, ROOT, Verdicts, attack, made_inside, read, titles


@pytest.fixture(scope="session")
def verdicts(engine, tmp_path_factory):
    """What came of the attacks; the workers of a parallel run share one container."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    scratch = tmp_path_factory.mktemp("image") / "scratch"
    if run is None:
        return attack(engine, scratch)
    shared = tmp_path_factory.getbasetemp().parent / f"attacks-{run}.json"
    with shared.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        known = file.read()
        if not known:
            known = json.dumps(asdict(attack(engine, scratch)))
            file.write(known)
    return Verdicts(**json.loads(known))


def test_the_list_of_attacks_has_at_least_sixty_titles_here_and_in_the_image():
    assert len(set(titles())) == len(titles())
    assert len(made_inside()) >= 60


def test_what_is_not_tried_in_the_image_is_a_real_attack_with_a_reason():
    for name, reason in NOT_IN_THE_IMAGE.items():
        title, _, way = name.partition("[")
        assert title in titles()
        source = (HERE / title.partition(":")[0]).read_text(encoding="utf-8")
        assert not way or f'id="{way.rstrip("]")}"' in source
        assert len(reason) > 20


@pytest.mark.docker
@pytest.mark.image
@pytest.mark.parametrize("title", made_inside(), ids=lambda title: title.partition("::")[2])
def test_an_attack_fails_in_the_image_too(verdicts, title):
    ends = verdicts.said.get(title, [f"it was not tried: the tests ended with {verdicts.code}"])
    assert [end for end in ends if end != "held"] == []


@pytest.mark.docker
@pytest.mark.image
def test_the_attacks_leave_nothing_behind_in_the_image(verdicts):
    assert verdicts.code == 0, verdicts.words


@pytest.mark.docker
@pytest.mark.image
def test_planted_failure_an_attack_that_succeeds_in_the_image_is_seen_there(engine, tmp_path):
    shutil.copytree(ROOT / "hermit", tmp_path / "hermit", symlinks=True)
    spelled = tmp_path / "hermit" / "bwrap" / "argv.py"
    text = spelled.read_text(encoding="utf-8")
    assert text.count('        Seal("/"),\n') == 1
    spelled.write_text(text.replace('        Seal("/"),\n', ""), encoding="utf-8")
    title = "test_files.py::test_nothing_can_be_written_at_the_root_or_to_the_system"
    made = attack(engine, tmp_path / "scratch", package=tmp_path / "hermit", only=title)
    with pytest.raises(AssertionError, match="root sealed"):
        test_an_attack_fails_in_the_image_too(made, title)


def test_an_attack_that_succeeds_breaks_or_is_skipped_in_the_image_is_seen():
    report = """<testsuites><testsuite>
      <testcase classname="tests.escape.test_files" name="test_a"/>
      <testcase classname="tests.escape.test_files" name="test_b[one]"/>
      <testcase classname="tests.escape.test_files" name="test_b[two]"><failure message="escaped">there</failure></testcase>
      <testcase classname="tests.escape.test_files" name="test_c"><error message="broken"/></testcase>
      <testcase classname="tests.escape.test_files" name="test_d"><skipped message="no root"/></testcase>
    </testsuite></testsuites>"""
    said = read(report)
    assert said.pop("test_files.py::test_a") == ["held"]
    assert said.pop("test_files.py::test_b") == ["held", "failure: escaped\nthere"]
    assert [ends[0].partition(":")[0] for ends in said.values()] == ["error", "skipped"]
    for title in ("test_files.py::test_b", "test_files.py::test_d", "test_files.py::test_x"):
        with pytest.raises(AssertionError):
            test_an_attack_fails_in_the_image_too(Verdicts(read(report), 1, ""), title)
