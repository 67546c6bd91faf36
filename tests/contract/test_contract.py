"""One list of guarantees, the same for every place that commands run in."""

from __future__ import annotations

import pytest

FIXED = {"HOME", "LANG", "PATH", "TMPDIR", "USER"}
SET = {"PLAIN", "LINES", "LETTERS", "EMPTY", "PATH"}
PASSED = {"MWM_A", "MWM_B"}

# Where running without a sandbox differs by its nature: nothing is hidden, held back or counted for a whole sandbox.
UNCONFINED = {
    "names": sorted(SET | PASSED | {"SECRET"}),
    "read-only was written": True,
    "missing source": 0,
    "renamed bind": ["SandboxError", "unconfined"],
    "processes refused": False,
    "a full /tmp refused": False,
    "a child of root can spoil a result": True,
}
CONFINED = {
    "names": sorted(FIXED | SET | PASSED),
    "read-only was written": False,
    "missing source": ["SandboxError", "missing source", True, False],
    "renamed bind": "data",
    "processes refused": True,
    "a full /tmp refused": True,
    "a child of root can spoil a result": False,
}


@pytest.fixture
def nature(backend):
    return UNCONFINED if backend == "unconfined" else CONFINED


def test_the_backend_is_the_one_that_was_asked_for(facts, backend):
    assert facts["records"] == ["unconfined" if backend == "unconfined" else "bubblewrap"]


def test_an_exit_code_passes_through_whatever_it_is(facts):
    assert facts["exit_codes"] == [0, 1, 7, 126, 127, 255]


def test_a_program_that_is_missing_is_127_and_one_that_cannot_start_is_126(facts):
    assert facts["unstartable"] == {"missing": [127, True], "a directory": 126, "no program": 126}


def test_a_signal_that_ends_a_command_is_told_from_an_exit_code(facts):
    assert facts["signals"] == [[None, number, 128 + number, False] for number in (15, 9, 11, 13)]


def test_a_command_reads_the_bytes_it_is_given_and_an_end_where_it_is_given_none(facts):
    assert facts["stdin"] == {"whole": True, "nothing": 0}


def test_standard_output_and_standard_error_are_kept_apart(facts):
    assert facts["streams_apart"] == ["out\n", "err\n"]


def test_output_is_bytes_and_arrives_unchanged(facts):
    assert facts["binary_output"] == [True, [255]]


def test_fifty_megabytes_of_output_are_read_to_the_end_and_kept_up_to_the_cap(facts):
    size = 50 * 1024 * 1024
    assert facts["huge_output"] == [0, 1000, size, size - 1000, 1000, 3000]


def test_a_stream_that_is_handed_over_goes_to_its_owner_and_the_others_are_kept(facts):
    assert facts["taken_over_streams"] == ["to the file\n", 0, "kept\n"]


def test_a_command_starts_in_its_working_directory(facts):
    assert facts["working_directory"]["there"] is True


def test_a_working_directory_that_does_not_exist_is_126_and_named(facts):
    assert facts["working_directory"]["absent"] == [126, True]


def test_only_declared_variables_exist_inside(facts, nature):
    seen = set(facts["environment"]["names"])
    if nature is UNCONFINED:
        assert seen >= set(nature["names"])
    else:
        assert seen == set(nature["names"])


def test_a_command_may_use_every_processor_that_the_host_may(facts):
    assert facts["processors"] is True


def test_a_variable_arrives_whole_with_its_line_breaks_and_letters(facts):
    assert facts["environment"]["declared"] is True


def test_a_search_path_that_is_declared_is_the_one_inside(facts):
    assert facts["environment"]["declared path"] is True


def test_a_record_names_every_variable_inside_and_no_value(facts):
    assert facts["environment"]["recorded"] is True
    assert facts["environment"]["values in the record"] is False


def test_a_granted_path_can_be_read(facts):
    assert facts["paths"]["read"] == "data"


def test_a_path_granted_for_reading_cannot_be_written(facts, nature):
    assert facts["paths"]["read-only was written"] is nature["read-only was written"]


def test_what_is_written_to_a_writable_path_is_there_afterwards(facts):
    assert facts["paths"]["written"] == [0, "made inside\n"]


def test_a_source_that_does_not_exist_refuses_the_start_and_is_not_made(facts, nature):
    assert facts["missing_source"] == nature["missing source"]


def test_a_path_can_be_shown_under_another_name_or_the_start_is_refused(facts, nature):
    assert facts["renamed_bind"] == nature["renamed bind"]


def test_a_timeout_asks_first_and_lets_the_command_say_goodbye(facts):
    assert facts["timeout_asks_first"] == [True, "up\ngoodbye\n", 3]


def test_a_timeout_kills_grandchildren_that_left_the_session_and_ignore_term(facts):
    assert facts["timeout_kills_everything"] == {
        "timed out": True,
        "said": "grandchild holds the lock\n",
        "gone": True,
        "proven": True,
        "recorded": True,
    }


@pytest.mark.parametrize("manner", ["loud", "quiet"])
def test_a_grandchild_left_behind_ends_with_its_command_whether_or_not_it_holds_the_output_open(facts, manner):
    assert facts["leftovers"][manner] == [0, False, "grandchild holds the lock\n", True]


def test_a_command_that_closes_its_streams_early_is_waited_for(facts):
    assert facts["early_close"] == [5, False]


def test_a_hundred_starts_in_parallel_all_succeed_with_their_own_output(facts):
    assert facts["parallel_starts"] is True


def test_fifty_starts_at_once_that_all_print_megabytes_all_end(facts):
    assert facts["loud_starts"] is True


def test_memory_is_bounded_and_what_stays_below_the_bound_runs(facts):
    assert facts["memory_limit"] == [9, 0]


def test_a_file_grows_to_its_bound_and_no_further(facts):
    assert facts["file_limit"] == [True, 1024 * 1024]


def test_processor_time_is_bounded_without_the_wall_clock(facts):
    assert facts["cpu_limit"] == [True, False]


def test_the_number_of_processes_is_bounded(facts, nature):
    held = nature["processes refused"]
    assert facts["pids_limit"] == {"refused": held, "at most": held, "some": True}


def test_the_scientific_packages_of_the_image_run_within_the_default_bounds(facts, backend):
    if backend != "image" and facts["scientific"] == "not installed":
        return
    assert facts["scientific"] == [0, ""]


def test_the_file_systems_in_memory_are_bounded(facts, nature):
    held = nature["a full /tmp refused"]
    assert facts["tmp_limit"] == {"/tmp": [held, held], "/dev/shm": [held, held]}


def test_what_a_command_used_is_counted(facts):
    assert facts["usage"] == [True, True, True]


def test_a_worker_hands_back_its_value_whatever_it_prints(facts):
    assert facts["worker_value"] is True


def test_a_worker_that_fails_says_how(facts):
    failures = dict(facts["worker_failures"])
    not_json = failures.pop("not_json")
    assert not_json["failure"] == "result"
    assert not_json["error"].startswith("what it returned is not JSON: ")
    assert failures == {
        "exception": {"failure": "exception", "error": "ValueError: made to fail"},
        "leave": {"failure": "exit", "error": "it called sys.exit(3)"},
        "leave_at_once": {"failure": "exit", "error": "it ended with exit code 4 and handed back nothing"},
        "killed": {"failure": "signal", "error": "it was ended by SIGKILL and handed back nothing"},
        "too_large": {"failure": "result", "error": "it handed back 200116 bytes; 65536 are accepted"},
        "wrong_type": {"failure": "result", "error": "run() returned dict, not RunOutput"},
    }


def test_a_program_that_a_worker_starts_cannot_forge_its_result(facts, nature):
    found = facts["worker_forged"]
    if found["as root"] and nature["a child of root can spoil a result"]:
        # Without a sandbox a child of root may open what it likes: the result is spoiled, and never taken for a value.
        assert found["result"] == "result"
    else:
        assert (found["result"], found["log"]) == ("honest", "[]\n")


def test_a_program_that_a_worker_starts_inherits_nothing_but_its_streams(facts):
    started, forked = facts["worker_descriptors"]
    assert (started["output"], started["log"]) == ("[]\n", "")
    assert forked == "0"


def test_a_command_inherits_nothing_but_its_streams(facts):
    assert facts["command_descriptors"] == "[]"


def test_a_run_that_is_given_up_ends_at_once_with_everything_in_it(facts):
    assert facts["given_up"] == ["Interrupted", True]


def test_the_front_door_passes_input_output_and_exit_code_through(facts):
    assert facts["front_door"]["input and code"] == [7, "through"]


def test_the_front_door_shows_a_signal_as_a_shell_does(facts):
    assert facts["front_door"]["signal"] == 143


def test_the_front_door_says_127_for_a_missing_program(facts):
    assert facts["front_door"]["missing"] == 127


def test_the_front_door_reads_its_specification_from_standard_input(facts):
    assert facts["front_door"]["from stdin"] == 3


@pytest.mark.parametrize("fault", ["no spec", "broken spec", "no command"])
def test_the_front_door_says_125_for_its_own_failures(facts, fault):
    assert facts["front_door"][fault] == 125


def test_the_front_door_works_for_a_caller_with_a_closed_standard_input(facts):
    assert facts["front_door"]["closed input"] == [0, "heard\n"]
