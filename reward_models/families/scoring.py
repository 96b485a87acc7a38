"""A family and an engine make a reward model: solutions in, one typed outcome each out.

Whatever cannot be scored is said so and why: an empty step, a step past the context, a thinking part that is skipped,
a text that holds the model's own tag or half a surrogate pair. A number of scores that differs from the number of
steps is an error, always.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from reward_models.cache import MemoryScoreCache, ScoreCache, score_key
from reward_models.errors import RewardModelError, ScaleError, StepCountError, TagInTextError
from reward_models.families.family import Family
from reward_models.families.reading import Engine, Reading
from reward_models.families.tokens import TextTokenizer, UnreadableTextError
from reward_models.families.windows import read_all
from reward_models.steps import split_thinking, with_steps
from reward_models.types import (
    OutcomeScore,
    ScoringUsage,
    Solution,
    Step,
    StepScore,
    StepScores,
    Unscored,
    UnscoredCode,
)

Thinking = Literal["skip", "score", "window"]
"""What becomes of steps in a thinking part: not shown to the model and unscored; read like any other; read like any
other, in overlapping windows where the whole is longer than the context."""

Mapped = Literal["sigmoid", "identity"]

_Found = dict[str, tuple[float, ...]]
_LARGEST = 700.0  # exp() of more overflows a double


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the caller chooses; every choice that changes a score is part of the model's fingerprint.

    Attributes:
        context: Fewer tokens than the family's own context, or more.
        windowed: Read steps past the context in overlapping windows instead of leaving them unscored.
        thinking: See :data:`Thinking`.
        mapping: For unbounded scores: ``sigmoid``, or ``identity`` for a checkpoint whose scores lie in [0, 1] already.
        aggregation: Another aggregation than the family's.
    """

    context: int | None = None
    windowed: bool = False
    thinking: Thinking = "skip"
    mapping: Mapped = "sigmoid"
    aggregation: str | None = None


@dataclass(kw_only=True)
class _Draft:
    """One solution on its way: which pieces are read where, and what is known already."""

    count: int
    known: dict[int, Unscored] = field(default_factory=dict)
    parts: list[tuple[Reading, tuple[int | None, ...]]] = field(default_factory=list)
    raw: dict[int, float] = field(default_factory=dict)

    @property
    def tokens(self) -> int:
        return sum(len(reading.ids) for reading, _ in self.parts)


class _FamilyModel:
    """What process and outcome models share: reading through the cache, and counting."""

    def __init__(
        self,
        *,
        name: str,
        family: Family,
        tokenizer: TextTokenizer,
        engine: Engine,
        settings: Settings | None = None,
        cache: ScoreCache | None = None,
    ) -> None:
        """Bring the parts together.

        Args:
            name: As the user named the model.
            family: Format, positions, head and scale.
            tokenizer: The checkpoint's; checked against the family's token ids.
            engine: Computes raw scores.
            settings: What the caller chose.
            cache: Where raw scores are kept; memory unless another is given.
        """
        family.check_tokenizer(tokenizer)
        self.name = name
        self.family = family
        self.tokenizer = tokenizer
        self.engine = engine
        self.settings = settings or Settings()
        self.cache: ScoreCache = MemoryScoreCache() if cache is None else cache
        self.context = self.settings.context or family.context
        self.usage = ScoringUsage()

    @property
    def fingerprint(self) -> str:
        """Changes whenever a score may: weights, number format, input format, context, windows, thinking, scale."""
        parts = [self.engine.fingerprint, self.family.name, self.family.version, self.context]
        settings = self.settings
        parts += [settings.windowed, settings.thinking, settings.mapping]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

    def _draft(self, solution: Solution, texts: Sequence[str], known: dict[int, Unscored], *, windowed: bool) -> _Draft:
        """Plan how the texts are read; those in ``known`` are not shown to the model."""
        draft = _Draft(count=len(texts), known=known)
        for index, text in enumerate(texts):
            if index not in known and not text.strip():
                known[index] = Unscored(code="empty_step", reason="the step is empty")
        shown = [index for index in range(len(texts)) if index not in known]
        if not shown:
            return draft
        pieces = [texts[index].strip() for index in shown]
        problem: Unscored | None = None
        try:
            windows = read_all(
                lambda part: self.family.write(self.tokenizer, solution.question.strip(), part),
                pieces,
                context=self.context,
                windowed=windowed,
            )
        except TagInTextError as error:
            problem = Unscored(code="tag_in_text", reason=str(error))
        except UnreadableTextError as error:
            problem = Unscored(code="unreadable", reason=str(error))
        except RewardModelError as error:
            raise type(error)(str(error), model=self.name, solution=solution.id) from error
        if problem is not None:
            known.update(dict.fromkeys(shown, problem))
            return draft
        for window in windows:
            targets = tuple(None if at is None else shown[at] for at in window.steps)
            draft.parts.append((window.reading, targets))
        seen = {target for _, targets in draft.parts for target in targets}
        reason = f"the step ends past the {self.context} tokens the model reads"
        known.update({index: Unscored(code="past_context", reason=reason) for index in shown if index not in seen})
        return draft

    def _read(self, drafts: Sequence[_Draft], solutions: Sequence[Solution]) -> None:
        """Fill in the raw scores, from the cache or the engine; equal readings are computed once."""
        found, missing = self._look_up(drafts)
        if missing:
            self._keep(found, missing, self.engine.raw_scores(list(missing.values())))
        for draft, solution in zip(drafts, solutions, strict=True):
            self._place(draft, found, solution)

    def _look_up(self, drafts: Sequence[_Draft]) -> tuple[_Found, dict[str, Reading]]:
        """The raw scores that are in the cache, and the readings that are not."""
        readings = {self._key(reading): reading for draft in drafts for reading, _ in draft.parts}
        cached = dict(zip(readings, self.cache.get_many(list(readings)), strict=True))
        found = {key: tuple(json.loads(text)) for key, text in cached.items() if text is not None}
        return found, {key: reading for key, reading in readings.items() if key not in found}

    def _keep(self, found: _Found, missing: Mapping[str, Reading], fresh: Sequence[tuple[float, ...]]) -> None:
        """Check what the engine gave, and put it with the rest and into the cache."""
        readings = list(missing.values())
        self._check_counts(readings, fresh)
        for key, reading, raw in zip(missing, readings, fresh, strict=True):
            found[key] = tuple(reading.by_step(raw))
        self.cache.put_many({key: json.dumps(found[key]) for key in missing if _finite(found[key])})
        tokens = sum(len(reading.ids) for reading in readings)
        self.usage = replace(self.usage, prompt_tokens=self.usage.prompt_tokens + tokens, calls=self.usage.calls + 1)

    def _key(self, reading: Reading) -> str:
        return score_key(
            engine=self.engine.fingerprint,
            family=self.family.name,
            version=self.family.version,
            ids=reading.ids,
            reads=reading.reads,
            counts=reading.counts,
        )

    def _check_counts(self, readings: Sequence[Reading], raw: Sequence[tuple[float, ...]]) -> None:
        if len(raw) != len(readings):
            raise StepCountError(f"{len(raw)} results came back for {len(readings)} sequences", model=self.name)
        for reading, numbers in zip(readings, raw, strict=True):
            if len(numbers) != len(reading.reads):
                raise StepCountError(
                    f"{len(numbers)} scores came back for {len(reading.reads)} positions", model=self.name
                )

    def _place(self, draft: _Draft, found: Mapping[str, tuple[float, ...]], solution: Solution) -> None:
        for reading, targets in draft.parts:
            numbers = found[self._key(reading)]
            if len(numbers) != len(targets):
                raise StepCountError(
                    f"{len(numbers)} scores for {len(targets)} steps", model=self.name, solution=solution.id
                )
            for target, number in zip(targets, numbers, strict=True):
                if target is None:
                    continue
                if math.isfinite(number):
                    draft.raw[target] = number
                else:
                    draft.known[target] = Unscored(code="failed", reason=f"the model gave {number}")
        if len(draft.raw) + len(draft.known) != draft.count:
            raise StepCountError(
                f"{len(draft.raw)} scores and {len(draft.known)} reasons for {draft.count} steps",
                model=self.name,
                solution=solution.id,
            )

    def _value(self, raw: float, solution: Solution) -> float:
        """The raw score on the scale [0, 1]."""
        if self.family.activation != "identity" and not self._as_is:
            return logistic(raw)
        if not 0.0 <= raw <= 1.0:
            raise ScaleError(
                f"the score {raw:g} lies outside [0, 1]; declare mapping='sigmoid'",
                model=self.name,
                solution=solution.id,
            )
        return raw

    @property
    def _as_is(self) -> bool:
        return self.settings.mapping == "identity" and self.family.activation != "softmax"


class FamilyProcessModel(_FamilyModel):
    """A process reward model: one score or reason a step."""

    @property
    def aggregation(self) -> str:
        """The family's own way to one number, unless the caller chose another."""
        return self.settings.aggregation or self.family.aggregation

    def score(self, solutions: Sequence[Solution]) -> list[StepScores]:
        """Score every step of every solution; see :mod:`reward_models.base`."""
        steps = [with_steps(solution).steps for solution in solutions]
        drafts = [self._plan(solution, found) for solution, found in zip(solutions, steps, strict=True)]
        self._read(drafts, solutions)
        return [self._outcome(*parts) for parts in zip(solutions, steps, drafts, strict=True)]

    def _plan(self, solution: Solution, steps: Sequence[Step]) -> _Draft:
        thinking = self.settings.thinking
        skipped = Unscored(code="thinking_skipped", reason="thinking parts are not scored; pass thinking='score'")
        known = {i: skipped for i, step in enumerate(steps) if step.part == "thinking" and thinking == "skip"}
        long = thinking == "window" and any(step.part == "thinking" for step in steps)
        return self._draft(solution, [step.text for step in steps], known, windowed=self.settings.windowed or long)

    def _outcome(self, solution: Solution, steps: tuple[Step, ...], draft: _Draft) -> StepScores:
        scores = tuple(
            StepScore(value=None, unscored=draft.known[index])
            if index in draft.known
            else StepScore(value=self._value(draft.raw[index], solution), raw=draft.raw[index])
            for index in range(draft.count)
        )
        return StepScores(
            steps=steps,
            scores=scores,
            activation="identity" if self._as_is else self.family.activation,
            aggregation=self.aggregation,
            tokens=draft.tokens,
        )


class FamilyOutcomeModel(_FamilyModel):
    """An outcome reward model: one score or reason a solution."""

    def score(self, solutions: Sequence[Solution]) -> list[OutcomeScore]:
        """Score every solution; see :mod:`reward_models.base`."""
        drafts = [self._plan(solution) for solution in solutions]
        self._read(drafts, solutions)
        return [self._outcome(solution, draft) for solution, draft in zip(solutions, drafts, strict=True)]

    def _plan(self, solution: Solution) -> _Draft:
        thinking, text = solution.thinking, solution.text
        if thinking is None:
            thinking, text = split_thinking(text)
        if thinking and self.settings.thinking != "skip":
            text = f"<think>\n{thinking.strip()}\n</think>\n\n{text.strip()}"
        return self._draft(solution, [text], {}, windowed=False)

    def _outcome(self, solution: Solution, draft: _Draft) -> OutcomeScore:
        activation = "identity" if self._as_is else self.family.activation
        if 0 in draft.known:
            found = _of_solution(draft.known[0], self.context)
            return OutcomeScore(value=None, activation=activation, unscored=found, tokens=draft.tokens)
        raw = draft.raw[0]
        return OutcomeScore(value=self._value(raw, solution), raw=raw, activation=activation, tokens=draft.tokens)


def logistic(raw: float) -> float:
    """1 / (1 + exp(-raw)), without overflow."""
    if raw >= 0:
        return 1.0 / (1.0 + math.exp(-min(raw, _LARGEST)))
    power = math.exp(max(raw, -_LARGEST))
    return power / (1.0 + power)


def _of_solution(found: Unscored, context: int) -> Unscored:
    """The same reason in words for a whole solution."""
    words: dict[UnscoredCode, str] = {
        "empty_step": "the solution is empty",
        "past_context": f"the solution ends past the {context} tokens the model reads",
    }
    return replace(found, reason=words.get(found.code, found.reason))


def _finite(numbers: Sequence[float]) -> bool:
    return all(math.isfinite(number) for number in numbers)
