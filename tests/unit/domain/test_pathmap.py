"""Paths of the host and of a sandbox, translated there and back, alone and in texts."""

from __future__ import annotations

import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hermit.domain.bind import Bind, contains
from hermit.domain.pathmap import Layout, PathMap

ADAPTER = Bind("/runs/r/adapter", "/w/adapter", writable=True)
STATE = Bind("/runs/r/state", "/w/state", writable=True)
TOOLS = Bind("/opt/tools", "/tools")
LEARNER = PathMap((ADAPTER, STATE, TOOLS), Layout("/runs/r", "/w"))

# Names that a shell, a list, a regular expression, a decoder or a Unicode normal form could trip over.
PARTS = ("a", "b", "ab", "a b", "a.b", "*", "a:b", "é", "e\u0301", "\udcff", "-", "[a]", "a'b", '"', "\\n", "...")
SOURCES = st.lists(st.sampled_from(PARTS), min_size=1, max_size=4).map(lambda parts: "/s/" + "/".join(parts))
TARGETS = st.lists(st.sampled_from(PARTS), min_size=1, max_size=3).map(lambda parts: "/t/" + "/".join(parts))
BINDS = st.lists(st.builds(Bind, SOURCES, TARGETS), max_size=6, unique_by=lambda bind: bind.target).map(tuple)
# Names without what ends a component, so that a text can be read in one way only.
PLAIN = st.lists(st.sampled_from(("a", "b", "ab", "a.b", "é", "e\u0301", "a-b")), min_size=1, max_size=4).map("/".join)
PLAIN_BINDS = st.lists(
    st.builds(Bind, PLAIN.map(lambda rest: f"/s/{rest}"), PLAIN.map(lambda rest: f"/t/{rest}")),
    min_size=1,
    max_size=5,
    unique_by=lambda bind: bind.target,
).map(tuple)


def first_with_the_longest_source(binds, path):
    holding = [bind for bind in binds if contains(bind.source, path)]
    return max(holding, key=lambda bind: len(bind.source)) if holding else None


# Paths


def test_a_path_below_a_source_becomes_its_place():
    assert LEARNER.inside("/runs/r/adapter/skills/x.md") == "/w/adapter/skills/x.md"
    assert LEARNER.inside("/opt/tools") == "/tools"


def test_a_path_that_no_bind_shows_stays():
    assert LEARNER.inside("/runs/r/secret/x") == "/runs/r/secret/x"


def test_a_path_that_only_begins_with_the_letters_of_a_source_stays():
    assert LEARNER.inside("/runs/r/adapter2") == "/runs/r/adapter2"


def test_trailing_and_double_slashes_do_not_matter():
    assert LEARNER.inside("//runs/r//adapter/") == "/w/adapter"
    assert PathMap((Bind("/a/", "/b//"),)).inside("/a/c/") == "/b/c"


def test_the_longest_source_wins_whatever_the_order():
    outer, inner = Bind("/a", "/x"), Bind("/a/b", "/y")
    for binds in ((outer, inner), (inner, outer)):
        assert PathMap(binds).inside("/a/b/c") == "/y/c"
        assert PathMap(binds).inside("/a/c") == "/x/c"


def test_among_equal_sources_the_first_bind_wins_and_each_place_leads_back():
    twice = PathMap((Bind("/a", "/y"), Bind("/a", "/x")))
    assert twice.inside("/a/f") == "/y/f"
    assert twice.outside("/x/f") == twice.outside("/y/f") == "/a/f"


def test_a_repeated_bind_is_one_bind():
    assert PathMap((TOOLS, TOOLS)).inside("/opt/tools/x") == "/tools/x"


def test_two_sources_at_one_place_are_refused():
    with pytest.raises(ValueError, match="/x is shown twice: from /a and from /b"):
        PathMap((Bind("/a", "/x"), Bind("/b", "/x")))


@pytest.mark.parametrize("path", ["relative", "", "/a/../b", "/a\0b"])
def test_a_host_path_that_is_not_absolute_and_plain_is_refused(path):
    for ask in (LEARNER.inside, LEARNER.cwd, LEARNER.relative, LEARNER.shadowed):
        with pytest.raises(ValueError, match="a path of the host"):
            ask(path)


def test_the_root_as_a_source_holds_every_path():
    whole = PathMap((Bind("/", "/host"),))
    assert whole.inside("/etc/passwd") == "/host/etc/passwd"
    assert whole.outside("/host/etc") == "/etc"
    assert whole.outside("/host") == "/"


def test_a_place_inside_leads_back_to_the_host():
    assert LEARNER.outside("/w/adapter/x") == "/runs/r/adapter/x"
    assert LEARNER.outside("/tools/") == "/opt/tools"


def test_a_place_that_belongs_to_no_bind_leads_nowhere():
    assert LEARNER.outside("/etc/passwd") is None
    assert LEARNER.outside("/w/adapter2") is None


def test_a_relative_path_starts_at_the_layouts_inside_root():
    assert LEARNER.outside("adapter/x") == "/runs/r/adapter/x"
    assert LEARNER.outside("./state/.//y/") == "/runs/r/state/y"


def test_without_a_layout_a_relative_path_leads_nowhere():
    assert PathMap((ADAPTER,)).outside("adapter/x") is None
    assert PathMap((Bind("/a", "/b"),)).outside("b") is None


def test_the_layouts_root_leads_nowhere_because_the_host_holds_more_there():
    assert LEARNER.outside(".") is None
    assert LEARNER.outside("/w") is None
    assert LEARNER.outside("secret/x") is None


def test_dots_are_resolved_within_a_bind():
    assert LEARNER.outside("/w/adapter/a/../b") == "/runs/r/adapter/b"
    assert LEARNER.outside("adapter/a/..") == "/runs/r/adapter"


@pytest.mark.parametrize(
    "path",
    [
        "/w/adapter/..",
        "/w/adapter/../state/x",
        "adapter/../../w/adapter",
        "/tools/../w/adapter",
        "/w/adapter/a/../../adapter",
    ],
)
def test_dots_that_climb_out_of_a_bind_lead_nowhere(path):
    assert LEARNER.outside(path) is None


def test_dots_that_climb_out_of_a_nested_bind_into_the_outer_one_lead_nowhere():
    nested = PathMap((Bind("/a", "/x"), Bind("/b", "/x/in")))
    assert nested.outside("/x/in/../secret") is None
    assert nested.outside("/x/in/f") == "/b/f"


@pytest.mark.parametrize("path", ["", "/tools/a\0b", "/tools/\ud800", "/tools/" + "a/" * 4096])
def test_what_no_file_can_be_named_leads_nowhere(path):
    assert LEARNER.outside(path) is None


@given(st.text(alphabet="/.ab\0wt\ud800\udcff", max_size=30))
def test_whatever_a_learner_names_leads_into_a_source_or_nowhere(path):
    binds = (Bind("/s/a", "/w/a"), Bind("/s/b", "/w/a/b"), Bind("/s/t", "/t"))
    outside = PathMap(binds, Layout("/s", "/w")).outside(path)
    assert outside is None or any(contains(bind.source, outside) for bind in binds)
    assert outside is None or ".." not in outside.split("/")


@given(BINDS, st.lists(st.sampled_from(PARTS), max_size=3))
def test_inside_then_outside_is_the_identity_where_nothing_else_is_shown_at_the_place(binds, rest):
    paths = PathMap(binds)
    for bind in binds:
        path = "/".join([bind.source, *rest])
        own = first_with_the_longest_source(binds, path)
        place = own.target + path[len(own.source) :]
        assert paths.inside(path) == place
        shadowed = any(len(other.target) > len(own.target) and contains(other.target, place) for other in binds)
        assert paths.shadowed(path) == shadowed
        if not shadowed:
            assert paths.outside(place) == path


def test_a_path_below_the_target_of_another_bind_is_shadowed():
    nested = PathMap((Bind("/a", "/x"), Bind("/b", "/x/in")))
    assert nested.shadowed("/a/in/f")
    assert nested.outside(nested.inside("/a/in/f")) == "/b/f"
    assert not nested.shadowed("/a/f")
    assert not nested.shadowed("/elsewhere")


@given(BINDS, SOURCES)
def test_a_path_that_belongs_to_no_bind_is_its_own_place(binds, path):
    assume(first_with_the_longest_source(binds, path) is None)
    assert PathMap(binds).inside(path) == path


def test_unicode_normal_forms_are_different_names():
    composed = PathMap((Bind("/s/\u00e9", "/x"),))
    assert composed.inside("/s/e\u0301/f") == "/s/e\u0301/f"
    assert composed.translate_text("/s/\u00e9 /s/e\u0301 /s/\u00e9\u0301") == "/x /s/e\u0301 /s/\u00e9\u0301"


def test_a_learner_is_told_paths_relative_to_the_layout():
    assert LEARNER.relative("/runs/r/adapter/x") == "adapter/x"
    assert LEARNER.relative("/runs/r") == "."
    assert LEARNER.relative("/opt/tools/t") == "/tools/t"
    assert LEARNER.relative("/elsewhere") == "/elsewhere"


def test_without_a_layout_a_learner_is_told_absolute_paths():
    assert PathMap((ADAPTER,)).relative("/runs/r/adapter/x") == "/w/adapter/x"


def test_a_layout_at_the_root_tells_every_path_relative_to_it():
    assert PathMap((TOOLS,), Layout("/runs", "/")).relative("/opt/tools/t") == "tools/t"


def test_what_a_learner_is_told_leads_back():
    for path in ("/runs/r/adapter/x", "/runs/r/state", "/opt/tools/t"):
        assert LEARNER.outside(LEARNER.relative(path)) == path


def test_the_layouts_outside_root_is_its_inside_root_and_what_lies_unbound_below_stays():
    assert LEARNER.cwd("/runs/r/") == "/w"
    assert LEARNER.cwd("/runs/r/other") == "/runs/r/other"


def test_a_broken_layout_is_refused():
    with pytest.raises(ValueError, match="inside root must be an absolute path"):
        Layout("/a", "w")
    with pytest.raises(ValueError, match="outside root must not hold"):
        Layout("/a/..", "/w")


# Aliases


def test_a_link_to_a_source_has_the_sources_place():
    linked = LEARNER.with_aliases({"/latest": "/runs/r/adapter"})
    assert linked.inside("/latest/x") == "/w/adapter/x"
    assert linked.outside("/w/adapter/x") == "/runs/r/adapter/x"


def test_a_link_above_sources_and_one_below_a_source_lead_to_their_places():
    linked = LEARNER.with_aliases({"/current": "/runs/r", "/skill": "/runs/r/adapter/skills/one"})
    assert linked.inside("/current/state/y") == "/w/state/y"
    assert linked.inside("/current/secret") == "/current/secret"
    assert linked.inside("/skill/SKILL.md") == "/w/adapter/skills/one/SKILL.md"
    assert linked.translate_text("cat /skill/SKILL.md > /current/state/y") == (
        "cat /w/adapter/skills/one/SKILL.md > /w/state/y"
    )


def test_a_bound_source_keeps_its_place_where_an_alias_has_its_name():
    assert LEARNER.with_aliases({"/opt/tools": "/runs/r/state"}).inside("/opt/tools/x") == "/tools/x"


def test_an_alias_that_leads_to_nothing_bound_changes_nothing():
    assert LEARNER.with_aliases({"/link": "/elsewhere"}).inside("/link/x") == "/link/x"


def test_aliases_add_up_and_the_first_map_is_unchanged():
    both = LEARNER.with_aliases({"/one": "/opt/tools"}).with_aliases({"/two": "/opt/tools"})
    assert both.inside("/one") == both.inside("/two") == "/tools"
    assert LEARNER.inside("/one") == "/one"


def test_a_relative_alias_is_refused():
    with pytest.raises(ValueError, match="an alias must be an absolute path"):
        LEARNER.with_aliases({"link": "/opt/tools"})


# Texts


@pytest.mark.parametrize(
    ("text", "translated"),
    [
        ("/opt/tools", "/tools"),
        ("--tools=/opt/tools/bin", "--tools=/tools/bin"),
        ("/opt/tools/bin:/usr/bin:/opt/tools", "/tools/bin:/usr/bin:/tools"),
        ('{"dir": "/opt/tools", "n": 1}', '{"dir": "/tools", "n": 1}'),
        ("cd '/opt/tools'&&ls>/runs/r/state/out;x</opt/tools|y", "cd '/tools'&&ls>/w/state/out;x</tools|y"),
        ("(/opt/tools) [/opt/tools] {/opt/tools} </opt/tools>", "(/tools) [/tools] {/tools} </tools>"),
        ("`/opt/tools` “/opt/tools”\n/opt/tools\t/opt/tools\r\n", "`/tools` “/tools”\n/tools\t/tools\r\n"),
        ("<p>/opt/tools</p> @/opt/tools #!/opt/tools/sh", "<p>/tools</p> @/tools #!/tools/sh"),
        ("It lies in /opt/tools. Is it /opt/tools? Look!", "It lies in /tools. Is it /tools? Look!"),
        ("see /opt/tools...", "see /tools..."),
        ("/opt//tools///bin /opt/tools/", "/tools///bin /tools/"),
        ("cd /runs/r && ls /runs/r/ /runs/r/adapter", "cd /w && ls /w/ /w/adapter"),
        ("a\0/opt/tools\0b", "a\0/tools\0b"),
    ],
)
def test_a_source_is_translated_where_it_stands_as_whole_components(text, translated):
    assert LEARNER.translate_text(text) == translated


@pytest.mark.parametrize(
    "text",
    [
        "/opt/tools2 /opt/tools-x /opt/tools.d /opt/tools_ /opt/toolsé /opt/tools\udcff /opt/tools* /opt/tools~",
        "x/opt/tools ./opt/tools ../opt/tools -/opt/tools _/opt/tools é/opt/tools e\u0301/opt/tools \udcff/opt/tools",
        "~/opt/tools ${HOME}/opt/tools $(pwd)/opt/tools */opt/tools",
        "https://opt/tools http://host/opt/tools http://host:80/opt/tools //opt/tools",
        "/Opt/tools /opt /opt/ /tools",
        "/runs/r/secret /runs/r/adapter.bak /runs/r2",
        "",
        "a / b // c",
    ],
)
def test_what_is_another_path_or_none_stays(text):
    assert LEARNER.translate_text(text) == text


def test_a_source_in_a_json_text_is_translated_as_json_spells_it():
    paths = PathMap((Bind('/s/a "b"\\n\u00e9\udcff', '/t/c"\u00e9'),))
    for in_ascii in (True, False):
        text = json.dumps(
            {"one": 'first\n/s/a "b"\\n\u00e9\udcff\nlast', "two": ['"/s/a "b"\\n\u00e9\udcff/x"']},
            ensure_ascii=in_ascii,
        )
        assert json.loads(paths.translate_text(text)) == {"one": 'first\n/t/c"\u00e9\nlast', "two": ['"/t/c"\u00e9/x"']}


def test_names_with_spaces_wildcards_and_delimiters_are_translated_whole():
    paths = PathMap((Bind("/s/a b", "/x"), Bind("/s/*", "/y"), Bind("/s/a:b", "/z"), Bind("/s/a", "/v")))
    assert paths.translate_text("'/s/a b/f' /s/*/f /s/a:b /s/a:/s/a c") == "'/x/f' /y/f /z /v:/v c"


def test_a_source_that_holds_the_name_of_another_is_taken_whole():
    assert PathMap((Bind("/s/a:/b", "/x"), Bind("/b", "/y"))).translate_text("/s/a:/b /s/a:/bc") == "/x /s/a:/bc"


def test_names_that_are_no_utf_8_are_translated():
    paths = PathMap((Bind("/s/\udcff", "/x"),))
    assert paths.translate_text("-o /s/\udcff/f") == "-o /x/f"


def test_the_root_as_a_source_is_left_alone_in_texts():
    assert PathMap((Bind("/", "/host"),)).translate_text("a / b /etc </p>") == "a / b /etc </p>"


def test_what_was_translated_is_not_translated_again():
    swapped = PathMap((Bind("/a", "/b"), Bind("/b", "/a"), Bind("/c", "/a/c")))
    assert swapped.translate_text("/a/b /b/a /c:/a") == "/b/b /a/a /a/c:/b"


def test_a_bind_at_its_own_place_wins_over_the_bind_around_it():
    assert PathMap((Bind("/a", "/x"), Bind("/a/b", "/a/b"))).translate_text("/a/b/c /a/c") == "/a/b/c /x/c"


@given(PLAIN_BINDS, PLAIN, st.sampled_from((" ", ":", '"', "'", "\n", "=", "(", ",")), st.sampled_from(' :"\n)],;|&>'))
def test_a_whole_path_in_a_text_is_translated_as_the_path_is(binds, rest, before, after):
    paths, path = PathMap(binds), f"/s/{rest}"
    assert paths.translate_text(path) == paths.inside(path)
    assert paths.translate_text(f"x{before}{path}{after}y") == f"x{before}{paths.inside(path)}{after}y"


@given(PLAIN_BINDS, st.lists(st.one_of(PLAIN.map(lambda rest: f"/s/{rest}"), st.text("/s ab.é\u0301:-", max_size=8))))
def test_no_source_that_was_whole_remains_unless_a_place_holds_it(binds, words):
    translated = PathMap(binds).translate_text(" ".join(words))
    left = [word for word in translated.split(" ") for bind in binds if contains(bind.source, word)]
    assert left == []


@given(PLAIN_BINDS, st.text(alphabet="/sab .é\u0301:-\n\"'", max_size=60))
def test_translating_twice_changes_nothing_where_no_place_holds_a_source(binds, text):
    paths = PathMap(binds)  # every source lies below /s, every place below /t
    once = paths.translate_text(text)
    assert paths.translate_text(once) == once


@given(BINDS, st.text(max_size=60))
def test_a_text_without_sources_stays(binds, text):
    assume(not any(bind.source[:2] in text for bind in binds))
    assert PathMap(binds).translate_text(text) == text


def test_thousands_of_binds_and_a_long_text_are_translated_in_one_pass():
    paths = PathMap(tuple(Bind(f"/s/{number}/data", f"/t/{number}") for number in range(4000)))
    text = " ".join(f"/s/{number % 5000}/data/f" for number in range(20_000))
    wanted = " ".join(
        f"/t/{number % 5000}/f" if number % 5000 < 4000 else f"/s/{number % 5000}/data/f" for number in range(20_000)
    )
    assert paths.translate_text(text) == wanted


# Commands and environments


def test_every_argument_and_every_value_is_translated_and_no_name():
    assert LEARNER.command(["/opt/tools/run", "--in", "/runs/r/adapter", "-v"]) == (
        "/tools/run",
        "--in",
        "/w/adapter",
        "-v",
    )
    assert LEARNER.environment([("PATH", "/opt/tools:/bin"), ("HOME", "/runs/r/state")]) == (
        ("PATH", "/tools:/bin"),
        ("HOME", "/w/state"),
    )


def test_maps_with_equal_binds_are_equal_and_can_be_keys():
    again = PathMap((ADAPTER, STATE, TOOLS), Layout("/runs/r/", "/w"))
    again.translate_text("/opt/tools")
    assert {LEARNER: 1}[again] == 1
