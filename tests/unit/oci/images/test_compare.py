"""What differs between two images is named: each setting, and each file with how it differs."""

from __future__ import annotations

import io
import tarfile

from hermit.oci.images.compare import Difference, configs, files, layers


def archive(**files):
    """A layer; a value is its content, or (content, mode, time)."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as opened:
        for name, value in files.items():
            content, mode, when = value if isinstance(value, tuple) else (value, 0o644, 0)
            info = tarfile.TarInfo(name)
            info.size, info.mode, info.mtime = len(content), mode, when
            opened.addfile(info, io.BytesIO(content))
    file.seek(0)
    return file


def found(one, other):
    return {(item.path, item.what) for item in files("layer 1", archive(**one), archive(**other))}


def test_equal_layers_differ_in_nothing():
    assert found({"a": b"1", "b": b"2"}, {"b": b"2", "a": b"1"}) == set()


def test_each_file_that_differs_is_named_with_how():
    one = {"same": b"0", "mode": (b"", 0o644, 0), "time": (b"", 0o644, 1), "size": b"1", "gone": b""}
    other = {"same": b"0", "mode": (b"", 0o755, 0), "time": (b"", 0o644, 2), "size": b"12", "new": b""}
    differing = dict(found(one, other))
    assert set(differing) == {"mode", "time", "size", "gone", "new"}
    assert differing["mode"] == "mode 0644 -> 0755"
    assert differing["time"] == "time 1 -> 2"
    assert differing["size"].startswith("size 1 -> 2, content ")
    assert (differing["gone"], differing["new"]) == ("only in the first", "only in the second")


def test_one_byte_is_seen():
    ((path, what),) = found({"a": b"one"}, {"a": b"onf"})
    assert path == "a"
    assert what.startswith("content ")


def test_only_layers_of_other_digests_are_looked_into():
    assert layers(["a", "b", "c"], ["a", "x", "c"]) == [1]
    assert layers(["a"], ["a", "b"]) == []


def test_each_setting_and_label_that_differs_is_named():
    one = {"Os": "linux", "Config": {"User": "1", "Labels": {"a": "1", "b": "2"}, "Cmd": None}}
    other = {"Os": "linux", "Config": {"User": "2", "Labels": {"a": "1", "b": "3"}, "Cmd": []}}
    assert configs(one, other) == [
        Difference("config", "label b", '"2" -> "3"'),
        Difference("config", "User", '"1" -> "2"'),
    ]
