"""The page of a run in a browser: what it shows, and that nothing an agent wrote acts there or leaves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hermit.run.reading import load, page

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import jinja2

pytestmark = [pytest.mark.bwrap, pytest.mark.chromium]

AGENT = """
import os
from hermit import RunOutput
def run(task, adapter):
    print("printed \\x1b[2J")
    if task["id"] == "broken": raise RuntimeError("<b>the model said no</b>")
    open(os.environ["HERMIT_LOGS"] + "/trace.txt", "w").write("traced")
    messages = [{"role": "user", "content": "go"}, {"role": "assistant", "content": task["say"], "calls": [1]}]
    return RunOutput(task["say"], messages=messages, cost_usd=0.5)
"""
JUDGE = """
def score(task, output):
    return {"score": {"solved": 1, "half": 0.5}.get(task["id"], 0), "feedback": "judged: " + str(output.output)}
"""
LINES = "agent: {name: 'agent.py:run', concurrency: 2}\njudge: {path: judge.py, mode: shared}\n"


def hostile(address: str) -> list[str]:
    """Words that would run a script, load something, or break out of where they stand."""
    own = "window.owned=true"
    return [
        f"<script>{own}</script>",
        f'<script src="{address}/script"></script>',
        f"</pre></details><img src='{address}/image' onerror={own}>",
        f"</title></style></textarea><svg onload={own}><image href='{address}/svg'/></svg>",
        f'<iframe srcdoc="<script>parent.{own}</script>" src="{address}/frame"></iframe>',
        f"<style>@import '{address}/style'; body {{ background: url({address}/background) }}</style>",
        f'<meta http-equiv="refresh" content="0;url={address}/refresh"><base href="{address}/">',
        f'<link rel="stylesheet" href="{address}/link"><link rel="prefetch" href="{address}/prefetch">',
        f"<video autoplay src='{address}/video' onerror={own}></video><object data='{address}/object'></object>",
        f"--><a href=\"javascript:{own}\" id=mean>x</a><form action='{address}/form'><input autofocus onfocus={own}></form>",
        "\u202eevil\x00\x1b[31m {{ 7 * 7 }} &lt;b&gt;",
    ]


@pytest.fixture
def made(task_set: Callable[..., Any], server: Any) -> Any:
    """A run of four tasks, each of which came to something else; the agent's words are hostile."""
    say = "\n".join(hostile(server.address))
    tasks = [{"id": name, "say": say} for name in ("solved", "half", "wrong", "broken")]
    found = task_set(AGENT, JUDGE, tasks=tasks, lines=LINES)
    said = found.eval()
    assert said.code == 0, said.err
    return found


@pytest.fixture
def shown(made: Any, browser: Any) -> Any:
    """The browser, with the page that `hermit report` left."""
    said = made.machine.run("-m", "hermit", "report", str(made.root / "runs" / "one"))
    assert said.code == 0, said.err
    assert all(letter.isprintable() or letter == "\n" for letter in said.out)
    browser.open(made.results.parent / "report.html")
    return browser


def test_the_page_shows_what_the_run_came_to(shown: Any) -> None:
    assert shown.run("document.title") == "one/none - Hermit"
    assert shown.shows("#mean") == "0.3750"
    assert shown.shows("#solved") == "1 of 4"
    assert shown.shows("#made") == "4"
    assert shown.shows("#confined") == "4 of 4"
    assert "agent.py:run" in shown.shows(".about")
    assert shown.shows(".legend").split() == (
        [
            "solved",
            "1",
            "25.0",
            "%",
            "partly",
            "solved",
            "1",
            "25.0",
            "%",
            "not",
            "solved",
            "1",
            "25.0",
            "%",
            "agent",
            "error",
            "1",
            "25.0",
            "%",
        ]
    )
    assert "none failed" in shown.shows("#isolation")
    assert shown.run(
        "[...document.querySelectorAll('#plots .plot')].map(plot => plot.getBoundingClientRect().height > 100)"
    ) == [
        True,
        True,
    ]
    assert shown.run("document.querySelectorAll('#plots circle').length") == 4
    heads = "[...document.querySelectorAll('.attempt > summary')].map(row => row.innerText.split(/\\s{2,}|\\n/)[1])"
    assert shown.run(heads) == ["broken", "half", "solved", "wrong"]


def test_an_attempt_opens_with_its_words_its_trajectory_its_files_and_its_records(shown: Any, server: Any) -> None:
    said = (
        "\n".join(hostile(server.address)).replace("\u202e", "\\u202e").replace("\0", "\\x00").replace("\x1b", "\\x1b")
    )
    assert not shown.run("document.querySelector('#a3 .body').checkVisibility()")
    shown.run("document.querySelector('#a3 > summary').click()")
    assert shown.run("document.querySelector('#a3 .body').checkVisibility()")
    texts = shown.run("[...document.querySelectorAll('#a3 .words pre')].map(words => words.textContent)")
    assert texts[:2] == [f"judged: {said}", said]
    assert "printed \\x1b[2J\n" in texts
    messages = shown.run(
        "[...document.querySelectorAll('#a3 .messages li')].map(item => item.innerText.split('\\n')[0])"
    )
    assert messages == ["user", "assistant"]
    assert said in shown.run("document.querySelectorAll('#a3 .messages pre')[1].textContent")
    assert "agent-logs/trace.txt" in shown.shows("#a3 .body")
    starts = shown.run("[...document.querySelectorAll('#a3 .start > summary')].map(start => start.innerText)")
    assert [start.split()[0] for start in starts] == ["task", "judge"]
    assert all("bubblewrap" in start and "no process left" in start for start in starts)
    shown.run("document.querySelectorAll('#a3 details').forEach(inner => inner.open = true)")
    body = shown.shows("#a3 .body")
    for words in ("no route outside: IPv4", "read-only", "writable", "memory_mb", "HERMIT_WORK", "traced"):
        assert words in body


def test_a_filter_leaves_the_attempts_of_one_kind(shown: Any) -> None:
    visible = "[...document.querySelectorAll('.attempt')].filter(each => each.checkVisibility()).map(each => each.id)"
    assert shown.run(visible) == ["a1", "a2", "a3", "a4"]
    for kind, left in (("agent_error", ["a1"]), ("partly", ["a2"]), ("all", ["a1", "a2", "a3", "a4"])):
        shown.run(f"document.querySelector('label:has(#only-{kind})').click()")
        assert shown.run(visible) == left


def acts(browser: Any) -> bool:
    """Whether words of an agent became anything but text, or ran."""
    if browser.run("window.owned === true"):
        return True
    foreign = "script, img, iframe, video, object, form, link, base, meta[http-equiv=refresh], svg image, a[href^=java]"
    return bool(browser.run(f"document.querySelectorAll({json.dumps(foreign)}).length"))


def asked_for(browser: Any) -> list[str]:
    """What the page asked for beside itself, whether or not it was let through."""
    urls = [event["request"]["url"] for event in browser.seen("Network.requestWillBeSent")]
    return [url for url in urls if not url.endswith(".html")]


def test_nothing_an_agent_wrote_acts_and_no_request_leaves(shown: Any, server: Any) -> None:
    shown.run("document.querySelectorAll('details').forEach(inner => inner.open = true)")
    shown.run("new Promise(done => setTimeout(done, 300))")
    assert not acts(shown)
    assert asked_for(shown) == []
    assert server.asked == []
    assert shown.seen("Log.entryAdded") == []  # the policy had nothing to refuse


def without(monkeypatch: pytest.MonkeyPatch, *, escaping: bool = False, policy: bool = False) -> None:
    """Switches one of the two walls off, or both."""
    real = page.environment

    def open_environment() -> jinja2.Environment:
        made = real()
        made.autoescape = False
        return made

    if escaping:
        monkeypatch.setattr(page, "environment", open_environment)
    if policy:
        monkeypatch.setattr(page, "POLICY", "")


def written(made: Any) -> Path:
    """The page, written by this process, but for the one thing that no policy of a page stops: a refresh leads away."""
    target: Path = made.root / "planted.html"
    with load.opened(made.root / "runs" / "one") as run:
        page.write(page.Page(run), target)
    target.write_bytes(target.read_bytes().replace(b'http-equiv="refresh"', b'http-equiv="no"'))
    return target


def test_planted_failure_without_escaping_words_become_elements_and_the_policy_still_stops_all_they_do(
    made: Any, browser: Any, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, escaping=True)
    browser.open(written(made))
    assert acts(browser)
    assert browser.run("window.owned") is None
    assert server.asked == []
    assert browser.seen("Log.entryAdded")  # the policy says what it refused


def test_planted_failure_without_both_walls_words_run_and_requests_leave(
    made: Any, browser: Any, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, escaping=True, policy=True)
    browser.open(written(made))
    assert browser.run("window.owned") is True
    assert {"/script", "/image", "/style"} <= set(server.asked)


CONTRAST = """
(() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgb = colour => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].map(part => part / 255); };
  const over = (top, below) => [0, 1, 2].map(n => top[n] * top[3] + below[n] * (1 - top[3])).concat(1);
  const ground = element => { const own = rgb(getComputedStyle(element).backgroundColor);
    return own[3] === 1 || !element.parentElement ? own : over(own, ground(element.parentElement)); };
  const light = colour => colour.slice(0, 3).map(part => part <= .04045 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4)
    .reduce((sum, part, n) => sum + part * [.2126, .7152, .0722][n], 0);
  const worst = {};
  for (const element of document.querySelectorAll('body *:not(svg *)')) {
    if (![...element.childNodes].some(node => node.nodeType === 3 && node.data.trim())) continue;
    const below = ground(element), pair = [light(over(rgb(getComputedStyle(element).color), below)), light(below)].sort();
    const ratio = (pair[1] + .05) / (pair[0] + .05), name = element.tagName + '.' + element.className;
    worst[name] = Math.min(worst[name] ?? 99, ratio);
  }
  return worst;
})()
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read_in_light_and_in_dark(shown: Any, scheme: str) -> None:
    shown.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    shown.run("document.querySelectorAll('details').forEach(inner => inner.open = true)")
    found = shown.run(CONTRAST)
    assert len(found) > 20
    assert {name: ratio for name, ratio in found.items() if ratio < 4.5} == {}
    (red, *_) = json.loads(shown.run("JSON.stringify(getComputedStyle(document.body).backgroundColor.match(/\\d+/g))"))
    assert (int(red) > 128) is (scheme == "light")
    assert shown.picture().startswith(b"\x89PNG")


def test_the_page_fits_a_narrow_window(shown: Any) -> None:
    shown.ask("Emulation.setDeviceMetricsOverride", width=420, height=800, deviceScaleFactor=1, mobile=False)
    shown.run("document.querySelectorAll('details').forEach(inner => inner.open = true)")
    assert shown.run("document.documentElement.scrollWidth") <= 420
