"""A public class name has one meaning in all source folders and packages."""

from __future__ import annotations

from collections import defaultdict

from tests.layout.sources import ADDED_FILES, ROOM_FILES, ROOT, source

#: Names with a second meaning in benches and trainings, which nothing imports from two rooms.
ALLOWED = {
    *("Call", "Generation", "Kind", "Point", "Problem", "Question"),
    *("Reader", "Reading", "Run", "Scored", "Source", "Worker"),
}


def rooms_by_name() -> dict[str, set[str]]:
    rooms: dict[str, set[str]] = defaultdict(set)
    for file in [*ROOM_FILES, *ADDED_FILES]:
        parts = file.relative_to(ROOT).parts
        room = parts[1] if parts[0] == "packages" else parts[0]
        for name in source(file).classes:
            if not name.startswith("_"):
                rooms[name].add(room)
    return rooms


def test_no_public_class_name_is_in_two_source_folders() -> None:
    rooms = rooms_by_name()
    assert len(rooms) > 300
    shared = {name: sorted(folders) for name, folders in rooms.items() if len(folders) > 1}
    assert {name: folders for name, folders in shared.items() if name not in ALLOWED} == {}
