"""A command runs no code from files in its working folder."""

from __future__ import annotations

from pathlib import Path

from qdrant_client import QdrantClient, models

from tests.serve.helpers import new_home, one_line_error, run
from tests.support.pickles import plant


def test_settings_file_in_the_working_folder_and_its_home_run_no_code(tmp_path: Path) -> None:
    home = new_home(tmp_path / "theirs" / "h")
    stores = home / "data" / "documents"
    client = QdrantClient(path=str(stores))
    vectors = models.VectorParams(size=384, distance=models.Distance.DOT)
    client.create_collection("documents", vectors_config=vectors)
    client.upsert("documents", [models.PointStruct(id=1, vector=[0.0] * 384)])
    client.close()
    plant(stores / "collection" / "documents" / "storage.sqlite", tmp_path / "ran")
    settings_file = home.parent / "casewright.toml"
    settings_file.write_text('home = "h"\ndomain = "documents"\n', encoding="utf-8")
    message = one_line_error(run(home, "ask", "hello", folder=home.parent))
    assert message.startswith("home in casewright.toml names a path")
    # A settings file that --config names is used, and the pickles of its stores are not read.
    assert "local mode" in one_line_error(run(home, "ask", "hello", "--config", settings_file))
    assert not (tmp_path / "ran").exists()
