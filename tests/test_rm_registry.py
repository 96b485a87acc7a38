"""Reward models by name: throw-away registries for the rules, the built-in ones for the names."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from reward_models import registry as module
from reward_models.errors import CapabilityError, MissingExtraError, RewardModelError, UnknownRewardModelError
from reward_models.names import ModelName
from reward_models.registry import Builtin, Registry, outcome_models, process_models
from reward_models.types import OutcomeScore, Solution


class Fixed:
    """Gives the same score to all."""

    def __init__(self, name: ModelName, *, value: float = 0.5, shift: float = 0.0) -> None:
        self.name = str(name)
        self.value = value + shift

    def score(self, solutions: Sequence[Solution]) -> list[OutcomeScore]:
        return [OutcomeScore(value=self.value) for _ in solutions]


def fresh(table: dict[str, Builtin] | None = None, groups: Sequence[str] = ()) -> Registry[Any]:
    return Registry("outcome", table or {}, groups=groups)


def test_a_built_in_target_is_imported_when_asked_for() -> None:
    registry = fresh({"lazy": Builtin("no_such_module:thing", "never imported")})
    assert registry.names() == {"lazy": "never imported"}
    with pytest.raises(MissingExtraError, match="no_such_module"):
        registry.load("lazy")


def test_the_factory_gets_the_parsed_name_and_the_options() -> None:
    registry = fresh()
    registry.register("fixed")(Fixed)
    model = registry.load("fixed:some/where#r1", value=0.25)
    assert (model.name, model.value) == ("fixed:some/where#r1", 0.25)
    assert registry.names() == {"fixed": "Gives the same score to all."}
    assert registry.options("fixed") == {"value", "shift"}


def test_a_class_without_arguments_is_a_factory_too() -> None:
    registry = fresh()

    @registry.register("plain")
    class Plain:
        name = "plain"

        def __init__(self, threshold: float = 0.5) -> None:
            self.threshold = threshold

        def score(self, solutions: Sequence[Solution]) -> list[OutcomeScore]:
            return []

    assert registry.load("plain").threshold == 0.5
    assert registry.load("plain", threshold=0.75).threshold == 0.75
    with pytest.raises(RewardModelError, match="nothing may follow 'plain'"):
        registry.load("plain:x")


def test_an_unknown_option_is_one_sentence() -> None:
    registry = fresh()
    registry.register("fixed")(Fixed)
    with pytest.raises(RewardModelError, match=r"there is no option beta; it knows shift, value"):
        registry.load("fixed", beta=1)


def test_duplicates_are_refused() -> None:
    registry = fresh({"built-in": Builtin("x:y", "")})
    registry.register("mine")(Fixed)
    with pytest.raises(ValueError, match=r"registered already, by .*Fixed"):
        registry.register("mine")(Fixed)
    with pytest.raises(ValueError, match="is built in"):
        registry.register("built-in")
    with pytest.raises(ValueError, match="before the first colon"):
        registry.register("no good")


def test_a_notebook_cell_may_run_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = fresh()
    monkeypatch.setattr(Fixed, "__module__", "__main__")
    registry.register("mine")(Fixed)
    registry.register("mine")(Fixed)
    assert registry.load("mine").value == 0.5


def test_a_typo_gets_suggestions_and_the_other_kind_is_pointed_out() -> None:
    with pytest.raises(UnknownRewardModelError, match="did you mean arithmetic"):
        process_models.load("aritmetic")
    with pytest.raises(UnknownRewardModelError, match="is an outcome reward model"):
        process_models.load("likelihood")
    with pytest.raises(UnknownRewardModelError, match="nothing follows the colon"):
        process_models.load("judge:")


def test_a_module_and_attribute_name_a_factory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_models.py").write_text(
        "class Mine:\n    name = 'mine'\n    def score(self, solutions):\n        return []\n\nnumber = 5\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert fresh().load("my_models:Mine").name == "mine"
    with pytest.raises(RewardModelError, match="has no 'Other'"):
        fresh().load("my_models:Other")
    with pytest.raises(RewardModelError, match="cannot be called"):
        fresh().load("my_models:number")


def test_what_is_no_reward_model_is_refused() -> None:
    registry = fresh()
    registry.register("odd")(lambda: 5)
    with pytest.raises(RewardModelError, match="no `score` method"):
        registry.load("odd")


def test_a_missing_package_names_its_extra() -> None:
    def needs_torch() -> None:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    registry = fresh()
    registry.register("heavy")(needs_torch)
    with pytest.raises(MissingExtraError, match=r"needs torch: pip install 'magicore\[local\]'"):
        registry.load("heavy")


def points(*entries: tuple[str, str, str]) -> Any:
    made = [EntryPoint(name=name, value=value, group=group) for name, value, group in entries]

    def select(*, group: str, name: str | None = None) -> list[EntryPoint]:
        return [point for point in made if point.group == group and name in (None, point.name)]

    return select


def test_entry_points_are_read_on_a_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    here = f"{__name__}:Fixed"
    monkeypatch.setattr(
        module,
        "entry_points",
        points(("own", here, "only.outcome"), ("both", here, "any.kind"), ("built-in", "no:where", "only.outcome")),
    )
    registry = fresh({"built-in": Builtin(here, "wins")}, groups=("only.outcome", "any.kind"))
    assert registry.load("own").name == "own"
    assert registry.load("both:x").name == "both:x"
    assert registry.load("built-in").name == "built-in"
    assert registry.names() == {"both": here, "built-in": "wins", "own": here}


def test_a_plain_url_means_a_served_model() -> None:
    registry = Registry("outcome", {"judge": Builtin("reward_models.judges:judge_orm", "")}, served=f"{__name__}:Fixed")
    for name in ("anything:x@http://h:8000", "judge@https://h", "arithmetic@http://h"):
        assert isinstance(registry.load(name), Fixed)
        assert registry.options(name) == {"value", "shift"}
    with pytest.raises(CapabilityError, match="it asks a language model"):
        registry.load("judge:openai:m@http://h")  # the URL is the language model's
    with pytest.raises(UnknownRewardModelError):
        registry.load("anything:x@vllm+http://h")


def test_two_packages_with_one_name_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "entry_points", points(("own", "a:X", "g"), ("own", "b:Y", "g")))
    with pytest.raises(RewardModelError, match="several packages offer this outcome reward model: a:X; b:Y"):
        fresh(groups=("g",)).load("own")


@pytest.mark.parametrize("registry", [outcome_models, process_models], ids=["outcome", "process"])
def test_every_built_in_name_has_a_factory_and_a_summary(registry: Registry[Any]) -> None:
    for name, summary in registry.names().items():
        assert summary
        assert callable(registry.factory(name))
    table = registry._table
    assert list(table) == sorted(table), "the table is in alphabetical order"


def test_listing_imports_no_torch() -> None:
    code = (
        "import sys; from reward_models import outcome_models, process_models; "
        "outcome_models.names(), process_models.names(); "
        "sys.exit(any(name in sys.modules for name in ('torch', 'transformers', 'numpy', 'sympy')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
