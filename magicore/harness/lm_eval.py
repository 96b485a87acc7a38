"""lm-evaluation-harness: a filter that reads answers by kind and votes by value (extra ``lm-eval``).

lm-eval has no plug-ins, so a task names the filter through a file beside its YAML::

    # utils.py
    from magicore.harness.lm_eval import Vote

    # task.yaml
    repeats: 8
    generation_kwargs: {do_sample: true, temperature: 0.8, seed: null}  # else an endpoint gets one seed eight times
    filter_list:
      - name: vote
        filter:
          - function: !function utils.Vote
            kind: number

Importing this module also registers it as ``magicore_vote``; ``python -m magicore.harness.lm_eval`` is lm-eval's
command with that done, so that ``function: magicore_vote`` works.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, cast, get_args

from lm_eval.api.registry import register_filter

from magicore.api import score_batch
from magicore.chains import read_chain
from magicore.config import Duplicates
from magicore.datasets import read_problem
from magicore.datasets.problems import checked_kind
from magicore.errors import InputError, MagicoreError
from magicore.methods.conclude import vote_on
from magicore.types import CallKey, Completion, Problem, ScoredChain
from reward_models.errors import RewardModelError
from reward_models.types import Solution

NO_ANSWER = "[invalid]"
"""What lm-eval's own filters give where nothing matches."""
Shows = Literal["answer", "text"]


class Vote:
    """Of a document's responses the winning answer, or the best response that gives it; a list of one, as lm-eval has
    it after a vote, so that ``take_first`` may follow.

    Args:
        kind: How answers are read and compared; see ``magicore list kinds``.
        method: ``self-consistency``, ``weighted-self-consistency``, ``best-of-k``, ``sc+prm`` or ``cot``.
        weights: What the method weighs by, where it lets that be chosen.
        orm: The outcome reward model that scores responses, for weighted votes.
        prm: The process reward model.
        question: The document's field with the question, which reward models read.
        choices: The document's field with the listed options of a multiple-choice question.
        shows: ``answer``, in canonical form (a number as digits, a choice as its letter), or ``text``, the response.
        duplicates: ``count``, or ``once``: a response that repeats another one word for word abstains.
        settings: Settings of :class:`~magicore.config.RunConfig` for the reward models, such as ``device``.

    Raises:
        InputError: An option is wrong.
    """

    def __init__(
        self,
        *,
        kind: str,
        method: str = "self-consistency",
        weights: str | None = None,
        orm: str | None = None,
        prm: str | None = None,
        question: str = "question",
        choices: str | None = None,
        shows: Shows = "answer",
        duplicates: str = "count",
        **settings: Any,
    ) -> None:
        if shows not in get_args(Shows):
            raise InputError(f"shows is {' or '.join(get_args(Shows))}, not {shows!r}")
        if duplicates not in get_args(Duplicates):
            raise InputError(f"duplicates is {' or '.join(get_args(Duplicates))}, not {duplicates!r}")
        self.kind = checked_kind(kind, "kind")
        self.method, self.weights = method, weights
        self.orm, self.prm = orm, prm
        self.question, self.choices = question, choices
        self.shows = shows
        self.duplicates = cast(Duplicates, duplicates)
        self.settings = settings

    def apply(self, resps: Iterable[Sequence[str]], docs: Sequence[Mapping[str, Any]]) -> list[list[str]]:
        """One winner a document; ``[invalid]`` where no response has an answer that can be read.

        Raises:
            InputError: A document lacks a field that is named.
        """
        problems = [self._problem(number, doc) for number, doc in enumerate(docs)]
        chains = list(self._scored(problems, list(resps)))
        return [[self._winner(problem, own)] for problem, own in zip(problems, chains, strict=True)]

    def _problem(self, number: int, doc: Mapping[str, Any]) -> Problem:
        wanted = [self.question] if self.orm or self.prm else []
        for field in [*wanted, *([self.choices] if self.choices else [])]:
            if field not in doc:
                raise InputError(f"document {number} has no field {field!r}; it has {', '.join(map(str, doc))}")
        row = {
            "question": str(doc.get(self.question) or "?"),
            "options": None if self.choices is None else doc[self.choices],
        }
        return read_problem(row, f"document {number}", str(number), kind=self.kind)

    def _scored(self, problems: Sequence[Problem], resps: Sequence[Sequence[str]]) -> Iterator[list[ScoredChain]]:
        """The responses as chains, with their scores where there are reward models; all in one batch."""
        solutions = [
            Solution(question=problem.question, text=text)
            for problem, texts in zip(problems, resps, strict=True)
            for text in texts
        ]
        scored = (
            iter(score_batch(solutions, orm=self.orm, prm=self.prm, **self.settings))
            if (self.orm or self.prm) and solutions
            else None
        )
        for problem, texts in zip(problems, resps, strict=True):
            key = CallKey(problem=problem.id, role="solver")
            chains = [
                read_chain(problem, key, Completion(index=index, text=text, stop="stop"))
                for index, text in enumerate(texts)
            ]
            yield [_with_scores(chain, next(scored) if scored is not None else None) for chain in chains]

    def _winner(self, problem: Problem, chains: Sequence[ScoredChain]) -> str:
        try:
            found, _ = vote_on(problem, chains, self.method, weights=self.weights, duplicates=self.duplicates)
        except ValueError as error:
            raise InputError(str(error)) from None
        if found.chosen is None:
            return NO_ANSWER
        chain = chains[found.chosen].chain
        return chain.text if self.shows == "text" else chain.answer or NO_ANSWER


def _with_scores(chain: Any, scores: ScoredChain | None) -> ScoredChain:
    if scores is None:
        return ScoredChain(chain=chain)
    return ScoredChain(
        chain=chain, orm=scores.orm, prm=scores.prm, o=scores.o, s=scores.s, aggregation=scores.aggregation
    )


register_filter("magicore_vote")(Vote)


def main() -> None:
    """lm-eval's command, with the filter registered."""
    from lm_eval.__main__ import cli_evaluate

    try:
        cli_evaluate()
    except (MagicoreError, RewardModelError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
