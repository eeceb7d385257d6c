"""`crossover store ls`: a mistake is told, and is no empty list."""

import pytest

from crossover.cli import main


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["ls", "--kind", "metric"], "--kind: no kind of entry is called 'metric'; did you mean `metrics`?"),
        (["--store", "absent", "ls"], "absent: --store: no such folder of results"),
    ],
)
def test_what_cannot_be_listed_is_told(tmp_path, monkeypatch, capsys, arguments, told) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    assert main(["store", *arguments]) == 2
    assert told in capsys.readouterr().err


def test_an_empty_store_has_no_entries(tmp_path, capsys) -> None:
    assert main(["store", "--store", str(tmp_path), "ls", "--kind", "metrics"]) == 0
    assert capsys.readouterr().out == ""
