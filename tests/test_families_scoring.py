"""From solutions to typed outcomes, with an engine that needs no model: what a family model promises for any engine."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_models.cache import MemoryScoreCache
from reward_models.errors import CheckpointError, RewardModelError, ScaleError, StepCountError
from reward_models.families import eurus_prm, math_shepherd, rlhflow, trl_prm
from reward_models.families.family import Family, tagged
from reward_models.families.heads import LinearHead
from reward_models.families.implicit import ImplicitEngine
from reward_models.families.reading import Reading
from reward_models.families.scoring import FamilyOutcomeModel, FamilyProcessModel, Settings, logistic
from reward_models.families.tokens import TextTokenizer
from reward_models.families.windows import read_all
from reward_models.steps import join_steps
from reward_models.types import Solution, Step

TAG = 1


class Letters:
    """A tokenizer of letters: a character is its code point, ``ки`` is the tag."""

    bos_token_id = None

    def __call__(self, text: str, **_options: object) -> dict[str, list[int]]:
        ids = [ord(letter) for letter in text.replace("ки", chr(TAG))]
        return {"input_ids": ids}

    def convert_tokens_to_ids(self, name: str) -> int | None:
        return TAG if name == "ки" else None

    def convert_ids_to_tokens(self, _token: int) -> str:
        return "ки"


class Counting:
    """An engine whose raw score is a function of the tokens up to the position; it keeps count."""

    fingerprint = "counting"

    def __init__(self) -> None:
        self.read: list[Reading] = []

    def raw_scores(self, readings: Sequence[Reading]) -> list[tuple[float, ...]]:
        self.read += readings
        return [tuple(math.sin(sum(reading.ids[: at + 1])) for at in reading.reads) for reading in readings]


def write(tokenizer: TextTokenizer, question: str, steps: Sequence[str]) -> Reading:
    text = f"{question} " + "\n".join(f"{step} ки" for step in steps)
    return tagged(tokenizer.encode(text), TAG, len(steps))


def write_whole(tokenizer: TextTokenizer, question: str, steps: Sequence[str]) -> Reading:
    ids = tokenizer.encode(question + steps[0])
    return Reading(ids=tuple(ids), reads=(len(ids) - 1,))


FAMILY = Family(
    name="letters",
    kind="process",
    source="this test",
    write=write,
    head=LinearHead(weight="score.weight"),
    activation="softmax",
    context=400,
    checkpoint="none",
    tokens={"ки": TAG},
)
WHOLE = replace(FAMILY, kind="outcome", write=write_whole, activation="sigmoid")


def process(engine: object = None, **settings: object) -> FamilyProcessModel:
    return FamilyProcessModel(
        name="letters",
        family=FAMILY,
        tokenizer=TextTokenizer(Letters()),
        engine=engine or Counting(),
        settings=Settings(**settings),
    )


def outcome(engine: object = None, **settings: object) -> FamilyOutcomeModel:
    return FamilyOutcomeModel(
        name="letters",
        family=WHOLE,
        tokenizer=TextTokenizer(Letters()),
        engine=engine or Counting(),
        settings=Settings(**settings),
    )


def listed(*texts: str, question: str = "Why?", **more: object) -> Solution:
    text, steps = join_steps(texts)
    return Solution(question=question, text=text, steps=steps, **more)


def codes(scores: object) -> list[str | None]:
    return [score.unscored.code if score.unscored else None for score in scores.scores]


def test_an_empty_batch_and_a_solution_without_text() -> None:
    assert process().score([]) == []
    assert process().score([Solution(question="Why?", text="")])[0].scores == ()
    assert outcome().score([Solution(question="Why?", text=" \n")])[0].unscored.code == "empty_step"


def test_an_empty_step_is_unscored_and_the_others_keep_their_places() -> None:
    scores = process().score([listed("one", "  ", "three")])[0]
    assert codes(scores) == [None, "empty_step", None]
    expected = process().score([listed("one", "three")])[0]
    assert [scores.scores[0].raw, scores.scores[2].raw] == [score.raw for score in expected.scores]


@pytest.mark.parametrize("place", ["question", "step"])
def test_a_tag_in_the_text_is_a_typed_outcome_that_spoils_no_other(place: str) -> None:
    bad = listed("a", "b", question="Is ки a tag?") if place == "question" else listed("a ки", "b")
    good = listed("a", "b")
    found = process().score([good, bad, good])
    assert codes(found[0]) == codes(found[2]) == [None, None]
    assert codes(found[1]) == ["tag_in_text", "tag_in_text"]
    assert "token 1" in found[1].scores[0].unscored.reason


def test_a_tag_that_vanishes_is_an_error() -> None:
    def glued(tokenizer: TextTokenizer, question: str, steps: Sequence[str]) -> Reading:
        return tagged(tokenizer.encode(question), TAG, len(steps))

    model = process()
    model.family = replace(FAMILY, write=glued)
    with pytest.raises(StepCountError, match=r"reward model 'letters', solution 's1'.*0 step tags.*2 steps"):
        model.score([listed("a", "b", id="s1")])


def test_lone_surrogates_are_unreadable() -> None:
    scores = process().score([listed("fine", "half \ud83d of a pair"), listed("fine")])
    assert codes(scores[0]) == ["unreadable", "unreadable"] and codes(scores[1]) == [None]
    assert "character" in scores[0].scores[0].unscored.reason
    assert outcome().score([Solution(question="\udc00", text="x")])[0].unscored.code == "unreadable"


def test_five_hundred_steps_and_a_hundred_thousand_characters() -> None:
    model = process(context=1_000_000)
    assert codes(model.score([listed(*(f"step {i}" for i in range(500)))])[0]) == [None] * 500
    assert codes(model.score([listed("x" * 100_000)])[0]) == [None]
    assert codes(process().score([listed("x" * 100_000, "y")])[0]) == ["past_context"] * 2


def test_steps_past_the_context_are_unscored_or_windowed() -> None:
    solution = listed(*("abcdefgh" * 5 for _ in range(30)))
    cut = process().score([solution])[0]
    scored = codes(cut).count(None)
    assert 0 < scored < 30 and codes(cut) == [None] * scored + ["past_context"] * (30 - scored)
    engine = Counting()
    whole = process(engine, windowed=True).score([solution])[0]
    assert codes(whole) == [None] * 30
    assert [score.raw for score in whole.scores[:scored]] == [score.raw for score in cut.scores[:scored]]
    assert all(len(reading.ids) <= 400 for reading in engine.read) and len(engine.read) > 1
    assert all(reading.ids[:4] == tuple(map(ord, "Why?")) for reading in engine.read)


def test_a_step_longer_than_a_window_is_past_the_context_and_the_next_is_not() -> None:
    scores = process(windowed=True).score([listed("a", "x" * 1000, "b")])[0]
    assert codes(scores) == [None, "past_context", None]


@given(st.lists(st.integers(1, 120), min_size=1, max_size=40), st.booleans())
def test_every_step_is_scored_at_most_once_and_windows_fit(lengths: list[int], windowed: bool) -> None:
    tokenizer = TextTokenizer(Letters())
    texts = [chr(97 + index % 26) * length for index, length in enumerate(lengths)]
    windows = read_all(lambda part: write(tokenizer, "Q", part), texts, context=100, windowed=windowed)
    scored = [step for window in windows for step in window.steps if step is not None]
    assert scored == sorted(set(scored))
    fits = [index for index, length in enumerate(lengths) if length + 4 <= 100]
    assert not windowed or scored == fits
    for window in windows:
        assert len(window.reading.ids) <= 100 and window.reading.steps == len(window.steps)


def test_thinking_is_skipped_scored_or_windowed() -> None:
    thinking = Step(text="hmm" * 200, start=0, end=600, part="thinking")
    answer = Step(text="So 4.", start=0, end=5)
    solution = Solution(question="Why?", text="So 4.", thinking="hmm" * 200, steps=(thinking, answer))
    assert codes(process().score([solution])[0]) == ["thinking_skipped", None]
    assert codes(process(thinking="score").score([solution])[0]) == ["past_context", "past_context"]
    assert codes(process(thinking="window").score([solution])[0]) == ["past_context", None]
    plain, thought = outcome(), outcome(thinking="score", context=5000)
    assert plain.score([solution])[0].raw != thought.score([solution])[0].raw


def test_duplicates_are_read_once_and_the_cache_answers_the_second_time() -> None:
    engine = Counting()
    model = process(engine)
    batch = [listed("a", "b"), listed("a", "c"), listed("a", "b")]
    first = model.score(batch)
    assert len(engine.read) == 2 and first[0] == first[2] != first[1]
    assert model.score(batch[::-1]) == first[::-1] and len(engine.read) == 2
    model.score([*batch, listed("d")])
    assert len(engine.read) == 3 and model.usage.calls == 2
    assert first[0].tokens == len(engine.read[0].ids)


def test_models_share_a_cache_only_where_scores_must_agree() -> None:
    cache, one, other = MemoryScoreCache(), Counting(), Counting()
    other.fingerprint = "other weights"
    for engine in (one, other):
        FamilyProcessModel(
            name="x", family=FAMILY, tokenizer=TextTokenizer(Letters()), engine=engine, cache=cache
        ).score([listed("a")])
    assert len(one.read) == len(other.read) == 1
    assert process(context=300).fingerprint != process().fingerprint == process().fingerprint


class Broken(Counting):
    def __init__(self, *numbers: float) -> None:
        super().__init__()
        self.numbers = numbers

    def raw_scores(self, readings: Sequence[Reading]) -> list[tuple[float, ...]]:
        return [self.numbers for _ in readings]


@pytest.mark.parametrize("numbers", [(), (0.5,), (0.5, 0.5, 0.5)])
def test_a_wrong_count_is_always_an_error(numbers: tuple[float, ...]) -> None:
    with pytest.raises(StepCountError, match="2 positions"):
        process(Broken(*numbers)).score([listed("a", "b")])


def test_a_number_that_is_none_is_a_failure_not_a_score_and_is_not_kept() -> None:
    model = process(Broken(math.nan, 0.5))
    assert codes(model.score([listed("a", "b")])[0]) == ["failed", None]
    model.engine = Counting()
    assert codes(model.score([listed("a", "b")])[0]) == [None, None]


def test_unbounded_scores_are_mapped_or_refused() -> None:
    score = outcome(Broken(3.0)).score([listed("a")])[0]
    assert (score.raw, score.activation) == (3.0, "sigmoid") and score.value == pytest.approx(1 / (1 + math.exp(-3)))
    with pytest.raises(ScaleError, match=r"\[0, 1\].*sigmoid"):
        outcome(Broken(3.0), mapping="identity").score([listed("a")])
    assert outcome(Broken(0.25), mapping="identity").score([listed("a")])[0].value == 0.25


def test_logistic_does_not_overflow() -> None:
    assert (logistic(-1e6), logistic(0), logistic(1e6)) == (pytest.approx(0, abs=1e-300), 0.5, 1.0)


def test_a_wrong_tokenizer_is_refused_when_the_model_is_put_together() -> None:
    with pytest.raises(CheckpointError, match="648"):
        FamilyProcessModel(name="x", family=math_shepherd.FAMILY, tokenizer=TextTokenizer(Letters()), engine=Counting())


def test_implicit_scores_are_the_scaled_difference_and_sum_over_a_step() -> None:
    reading = Reading(ids=(5, 6, 7, 8), reads=(0, 1, 2), counts=(2, 1))
    engine = ImplicitEngine(Broken(-1.0, -2.0, -3.0), Broken(-2.0, -2.5, -1.0), 0.1)
    (raw,) = engine.raw_scores([reading])
    assert reading.by_step(raw) == pytest.approx([0.1 * (1 + 0.5), 0.1 * -2])
    with pytest.raises(ValueError, match="beta"):
        ImplicitEngine(Counting(), Counting(), 0)


@pytest.mark.parametrize(
    ("reads", "counts"), [((1, 1), ()), ((2, 1), ()), ((4,), ()), ((-1,), ()), ((0, 1), (1,)), ((0, 1), (1, 2))]
)
def test_a_reading_checks_its_positions(reads: tuple[int, ...], counts: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"read"):
        Reading(ids=(1, 2, 3, 4), reads=reads, counts=counts)


def test_every_family_says_where_its_facts_are_from() -> None:
    for family in (math_shepherd.FAMILY, rlhflow.PRM, rlhflow.ORM, eurus_prm.FAMILY, trl_prm.FAMILY):
        assert family.source and family.aggregation_source and family.context > 0
    assert issubclass(CheckpointError, RewardModelError) and json.dumps(FAMILY.tokens)
