"""Score caches: one contract, two implementations."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from reward_models.cache import MemoryScoreCache, ScoreCache, SqliteScoreCache, score_key
from reward_models.errors import RewardModelError


@pytest.fixture(params=["memory", "sqlite"])
def cache(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryScoreCache | SqliteScoreCache]:
    if request.param == "memory":
        yield MemoryScoreCache()
    else:
        with SqliteScoreCache(tmp_path / "deep" / "scores.sqlite") as sqlite:
            yield sqlite


def test_keeps_order_and_says_what_is_missing(cache: MemoryScoreCache | SqliteScoreCache) -> None:
    assert isinstance(cache, ScoreCache)
    cache.put_many({"a": "1", "b": '{"x": null}'})
    assert cache.get_many(["b", "zzz", "a", "b"]) == ['{"x": null}', None, "1", '{"x": null}']
    assert cache.get_many([]) == []


def test_overwrites(cache: MemoryScoreCache | SqliteScoreCache) -> None:
    cache.put_many({"a": "1"})
    cache.put_many({"a": "2"})
    cache.put_many({})
    assert cache.get_many(["a"]) == ["2"]
    assert len(cache) == 1


def test_more_keys_than_a_query_holds(cache: MemoryScoreCache | SqliteScoreCache) -> None:
    cache.put_many({str(number): str(number * number) for number in range(2500)})
    assert cache.get_many([str(number) for number in range(2501)])[2497:] == ["6235009", "6240004", "6245001", None]


def test_several_threads(cache: MemoryScoreCache | SqliteScoreCache) -> None:
    def work(thread: int) -> None:
        for number in range(50):
            cache.put_many({f"{thread}/{number}": str(number)})
            assert cache.get_many([f"{thread}/{number}"]) == [str(number)]

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(cache) == 400


def test_sqlite_outlives_the_object_and_is_shared(tmp_path: Path) -> None:
    path = tmp_path / "scores.sqlite"
    with SqliteScoreCache(path) as first, SqliteScoreCache(path) as second:
        first.put_many({"a": "1"})
        assert second.get_many(["a"]) == ["1"]
    with SqliteScoreCache(path) as third:
        assert third.get_many(["a"]) == ["1"]


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("this is no database, and long enough to be told apart from one" * 40)
    with pytest.raises(RewardModelError, match=r"notes\.txt: not a usable SQLite file"):
        SqliteScoreCache(path)
    with pytest.raises(RewardModelError, match="cannot be opened"):
        SqliteScoreCache(tmp_path)


def test_keys_depend_on_every_value_and_on_nothing_else() -> None:
    key = score_key(model="m", ids=[1, 2], dtype="bf16")
    assert key == score_key(dtype="bf16", ids=(1, 2), model="m")
    assert len(key) == 64
    assert len({key, score_key(model="m", ids=[12], dtype="bf16"), score_key(model="m", ids=[1, 2], dtype="fp32")}) == 3
    assert score_key(text="\ud800") != score_key(text="\ud801")
    with pytest.raises(ValueError, match="not JSON compliant"):
        score_key(beta=float("nan"))
