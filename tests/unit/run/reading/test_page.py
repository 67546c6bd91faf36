"""The page of a run: whatever anybody wrote is text on it, and it may do nothing but look as we say."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
import time
import tracemalloc
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from hermit.domain.bind import Bind
from hermit.domain.record import Check
from hermit.errors import ConfigError
from hermit.run.reading import page, words

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = [
    "<script>alert(1)</script>",
    "</pre></details></section></main></body></html><h1>after</h1>",
    "</title></style><style>*{display:none}</style>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "<!-- --!> --> <![CDATA[ ]]>",
    "<svg/onload=alert(1)><a href=javascript:alert(1)>",
    "{{ 7 * 7 }}{% raw %}{# #}",
    "&lt;b&gt;&amp;&#60;script&#62;",
    "\u202egpj.exe\u2066",
    "\x00\x1b[2J\x1b]8;;http://x\x07\r\x85\ufeff",
    "\ud800\udfff",
    "<plaintext><textarea><xmp>",
    '<base href="http://x/"><meta http-equiv=refresh content="0;url=http://x/"><link rel=stylesheet href=//x>',
]
ANY = st.text(st.characters(codec=None, exclude_categories=()), max_size=60)
MARKUP = st.lists(st.sampled_from([*HOSTILE, "<", ">", "&", '"', "'", "</", "<!--", "]]>", " ", "x"])).map("".join)


class Read(HTMLParser):
    """The structure of a page, and its text where words of others stand."""

    def __init__(self, html: bytes) -> None:
        super().__init__(convert_charrefs=True)
        self.structure: list[tuple[str, Any]] = []
        self.texts: list[str] = []
        self._open = False
        self.feed(html.decode())
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.structure.append((tag, attrs))
        if tag == "pre":
            self.texts.append("")
            self._open = True

    def handle_endtag(self, tag: str) -> None:
        self.structure.append((f"/{tag}", None))
        self._open = self._open and tag != "pre"

    def handle_comment(self, data: str) -> None:
        self.structure.append(("comment", data))

    def handle_decl(self, decl: str) -> None:
        self.structure.append(("declaration", decl))

    def handle_pi(self, data: str) -> None:
        self.structure.append(("instruction", data))

    def unknown_decl(self, data: str) -> None:
        self.structure.append(("unknown", data))

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts[-1] += data


def whole(run: Any, **more: Any) -> bytes:
    return b"".join(page.Page(run, **more).pieces())


def with_words(maker: Any, a_row: Any, a_record: Any, said: str) -> Any:
    """A run in which these words stand wherever somebody else's can."""
    utf8 = said.encode("utf-8", "replace").decode()
    record = a_record(
        reason=said,
        image=said,
        reaches=(said,),
        variables=(said,),
        warnings=(said,),
        binds=(Bind("/" + utf8.replace("\0", ""), "/inside"),),
        limits=(("memory_mb", 1, said),),
        checks=(Check(said, passed=True, detail=said), Check(said, passed=False, detail=said)),
        ended=said,
    )
    row = a_row(
        "t" + utf8,
        output=said,
        error=said,
        log=said,
        judge={"score": 0.5, "feedback": said, "extra": {said: said}},
        phase=said,
        cause=said,
        tokens={said: said},
        missing=[said],
        on_host=said,
        judge_on_host=said,
        records=["r.json", said],
    )
    lock = {"hermit": said, "settings": {"agent": {"name": f"{said}:{said}"}, "judge": {"mode": said}}}
    paths = maker.run([row], name=f"run{next(NUMBER)}", lock=lock, records={"r.json": record})
    return maker.open(paths.root)


NUMBER = itertools.count()
# A page takes a while to write, and any words that break it say enough.
WITHOUT_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=30,
    deadline=None,
    phases=WITHOUT_SHRINKING,
)
@given(st.one_of(ANY, MARKUP).map("x{}".format))
def test_no_words_change_the_structure_of_the_page(maker: Any, a_row: Any, a_record: Any, said: str) -> None:
    plain = Read(whole(with_words(maker, a_row, a_record, "x")))
    read = Read(whole(with_words(maker, a_row, a_record, said)))
    assert read.structure == plain.structure
    kept = json.loads(json.dumps(said))  # two halves of a surrogate are one letter then
    assert read.texts.count("\n" + words.spelled(kept)) == 4  # the error, the feedback, the output and the log


@pytest.mark.parametrize("said", HOSTILE)
def test_hostile_words_are_text(maker: Any, a_row: Any, a_record: Any, said: str) -> None:
    plain = Read(whole(with_words(maker, a_row, a_record, "x")))
    html = whole(with_words(maker, a_row, a_record, f"x{said}"))
    assert Read(html).structure == plain.structure
    for letter in ("\x00", "\x1b", "\r", "\u202e", "\u2066"):
        assert letter not in html.decode()


def test_planted_failure_words_that_are_not_escaped_are_seen(
    maker: Any, a_row: Any, a_record: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = page.environment

    def unescaped() -> Any:
        made = real()
        made.autoescape = False
        return made

    monkeypatch.setattr(page, "environment", unescaped)
    plain = Read(whole(with_words(maker, a_row, a_record, "x")))
    assert Read(whole(with_words(maker, a_row, a_record, "x<script>"))).structure != plain.structure


def test_the_policy_lets_nothing_load_and_no_style_apply_but_the_one_whose_digest_it_names(
    maker: Any, a_row: Any
) -> None:
    html = whole(maker.opened([a_row("a")])).decode()
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    structure = Read(html.encode()).structure
    ((number, found),) = [
        (number, dict(attrs)["content"])
        for number, (tag, attrs) in enumerate(structure)
        if tag == "meta" and dict(attrs).get("http-equiv") == "Content-Security-Policy"
    ]
    assert found == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    # Nothing that the policy is about stands before it.
    assert [tag for tag, _ in structure[:number]] == ["declaration", "comment", "html", "head", "meta"]


def test_nothing_of_the_page_asks_for_anything_or_runs(maker: Any, a_row: Any, a_record: Any) -> None:
    run = maker.opened([a_row("a", records=["r.json"])], records={"r.json": a_record()})
    html = whole(run)
    structure = Read(html).structure
    tags = {tag.lstrip("/") for tag, _ in structure}
    assert tags & {"script", "link", "img", "iframe", "object", "embed", "form", "base", "video", "audio"} == set()
    attributes = {pair for _, attrs in structure if isinstance(attrs, list) for pair in attrs}
    assert {value for name, value in attributes if name == "href"} <= {"#a1"}
    assert not {
        name for name, _ in attributes if name.startswith("on") or name in ("src", "style", "srcdoc", "xlink:href")
    }
    assert re.search(rb"https?:|//[a-z]|url\(|@import", html) is None


def test_a_page_that_is_full_still_has_a_line_for_each_attempt(maker: Any, a_row: Any) -> None:
    run = maker.opened([a_row(f"t/{number}", output="word " * 2000) for number in range(40)])
    html = whole(run, most=100_000)
    assert html.count(b'<details class="attempt') == 40
    assert 5 < html.count(b"This page is full") < 40
    assert len(html) < 250_000
    assert b"This page is full" not in whole(run)


def test_an_output_of_fifty_megabytes_is_cut_with_a_note_and_held_no_longer_than_its_turn(
    maker: Any, a_row: Any
) -> None:
    run = maker.opened([a_row("a", output="<b>" * 17_000_000), a_row("b")])
    tracemalloc.start()
    try:
        pieces = page.Page(run).pieces()
        html = b"".join(pieces)
        left, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    note = "50985000 characters are left out here; all of it is in <code>eval/none/results.jsonl, line 1</code>"
    assert note in html.decode()
    assert len(html) < 1 << 20
    assert left < 20_000_000


def test_a_page_is_replaced_and_nothing_else_is(maker: Any, a_row: Any, tmp_path: Path) -> None:
    run = maker.opened([a_row("a")])
    target = tmp_path / "page.html"
    for _ in range(2):
        page.write(page.Page(run), target)
    assert target.read_bytes().startswith(page.HEAD)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    other = tmp_path / "mine.html"
    other.write_text("<!doctype html>\n<p>mine")
    for wrong in (other, tmp_path):
        with pytest.raises(ConfigError, match="no page of a run"):
            page.write(page.Page(run), wrong)
    assert other.read_text() == "<!doctype html>\n<p>mine"


def test_a_page_that_cannot_be_written_is_one_refusal(maker: Any, a_row: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"cannot be written: (File exists|Not a directory)") as caught:
        page.write(page.Page(maker.opened([a_row("a")])), tmp_path / "file" / "page.html")
    assert "--page" in caught.value.cure


def test_a_page_of_many_attempts_takes_no_longer_for_each_than_one_of_a_few(
    maker: Any, a_row: Any, a_record: Any
) -> None:
    def seconds(number: int) -> float:
        rows = [a_row(f"t/{task}", records=["r.json"]) for task in range(number)]
        run = maker.opened(rows, name=f"of{number}", records={"r.json": a_record()})
        began = time.process_time()
        whole(run)
        return (time.process_time() - began) / number

    seconds(10)
    assert seconds(400) < 5 * seconds(40)


def test_what_ran_is_said_as_far_as_it_is_known(maker: Any, a_row: Any) -> None:
    lock = {"hermit": "1.2", "settings": {"agent": {"name": "/a/b/agent.py:run"}, "judge": {"mode": "shared"}}}
    known = dict(page.about(maker.opened([a_row("a")], name="x", lock=lock)))
    assert known == {"agent": "agent.py:run", "adapter": "none", "judge": "shared", "Hermit": "1.2"}
    for odd in ({}, {"settings": []}, {"settings": {"agent": 5, "judge": None}}):
        assert dict(page.about(maker.opened([a_row("a")], name=f"y{next(NUMBER)}", lock=odd))) == {"adapter": "none"}
