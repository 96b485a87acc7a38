"""Training examples: token ids, the positions that are read, and what should be read there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from magicore.errors import InputError
from magicore.llms.base import Message
from magicore.llms.local.prompts import prompt_tokens
from magicore.training.labels import LabelledRow
from reward_models.errors import RewardModelError
from reward_models.families.reading import Reading
from reward_models.families.tokens import TextTokenizer, UnreadableTextError
from reward_models.steps import with_steps

Write = Callable[[TextTokenizer, str, Sequence[str]], Reading]
Conversation = tuple[Message, ...]


@dataclass(frozen=True, kw_only=True)
class Example:
    """One sequence, or several that begin alike, the beginning once.

    Attributes:
        problem: Whose example it is; examples of one problem are trained on or held out together.
        ids: Token ids.
        reads: Places in ``ids`` whose hidden states meet the head, ascending.
        targets: One a read: the token that follows it (language models), or how right it is, from 0 to 1.
        trunk: How many of the first ids all sequences share.
        starts: Where in ``ids`` the second and later sequences go on from the trunk.
    """

    problem: str
    ids: tuple[int, ...]
    reads: tuple[int, ...]
    targets: tuple[float, ...]
    trunk: int = 0
    starts: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if len(self.reads) != len(self.targets) or not self.reads:
            raise ValueError(f"{len(self.targets)} targets for {len(self.reads)} reads: one a read, at least one")


@dataclass
class Examples:
    """Examples, and how many inputs made none, by reason."""

    kept: list[Example] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    def add(self, example: Example, longest: int) -> None:
        """Keep an example of at most ``longest`` tokens."""
        if len(example.ids) > longest:
            self.left_out["too long"] += 1
        else:
            self.kept.append(example)


def step_examples(rows: Iterable[LabelledRow], tokenizer: TextTokenizer, write: Write, longest: int) -> Examples:
    """One example a solution, read where the family reads its steps; steps without a label are written and not read.

    Raises:
        InputError: A solution's labels are not as many as its steps.
    """
    found = Examples()
    for row in rows:
        solution = with_steps(row.given.solution)
        steps = [step for step in solution.steps if step.part == "text"]
        if len(row.labels) != len(steps):
            raise InputError(f"solution {solution.id!r}: {len(row.labels)} step labels for {len(steps)} steps")
        if all(label is None for label in row.labels):
            found.left_out["no step has a label"] += 1
            continue
        reading = _written(write, tokenizer, solution.question, [step.text.strip() for step in steps], found)
        if reading is None:
            continue
        pairs = [(at, label) for at, label in zip(reading.reads, row.labels, strict=True) if label is not None]
        found.add(_example(row, reading.ids, pairs), longest)
    return found


def outcome_examples(rows: Iterable[LabelledRow], tokenizer: TextTokenizer, write: Write, longest: int) -> Examples:
    """One example a solution whose outcome is known."""
    found = Examples()
    for row in rows:
        if row.outcome is None:
            found.left_out["the outcome is not known"] += 1
            continue
        solution = row.given.solution
        reading = _written(write, tokenizer, solution.question, [solution.text.strip()], found)
        if reading is not None:
            found.add(_example(row, reading.ids, [(reading.reads[-1], float(row.outcome))]), longest)
    return found


def conversation_examples(conversations: Iterable[tuple[str, Conversation]], tokenizer: Any, longest: int) -> Examples:
    """One example a conversation ``(problem, messages)``: the last message, the assistant's, is what is learnt, up to
    and with the token that ends it; the rest is only read.
    """
    found = Examples()
    end = tokenizer.eos_token_id
    for problem, messages in conversations:
        prompt = prompt_tokens(tokenizer, messages[:-1], None)
        answer = [int(token) for token in tokenizer(messages[-1]["content"], add_special_tokens=False)["input_ids"]]
        answer.append(int(end))
        ids = (*prompt, *answer)
        reads = tuple(range(len(prompt) - 1, len(ids) - 1))
        example = Example(problem=problem, ids=ids[:-1], reads=reads, targets=tuple(map(float, answer)))
        found.add(example, longest)
    return found


def bundled(examples: Sequence[Example], longest: int) -> list[Example]:
    """The examples of each problem in bundles of at most ``longest`` tokens that hold their common beginning once.

    A bundle trains on the same sum of losses as its parts: a solution of a hundred tokens after a question of as many
    costs little more than half.
    """
    bundles: list[list[Example]] = []
    of: dict[str, list[Example]] = {}
    for example in examples:
        together = of.get(example.problem)
        if together is None or _shared(*together, example) == 0 or _length([*together, example]) > longest:
            of[example.problem] = together = []
            bundles.append(together)
        together.append(example)
    return [_bundle(together) for together in bundles]


def _shared(first: Example, *others: Example) -> int:
    """How many first ids all have in common, none of them read."""
    limit = min(min(len(one.ids), one.reads[0]) for one in (first, *others))
    return next((at for at in range(limit) if any(one.ids[at] != first.ids[at] for one in others)), limit)


def _length(together: Sequence[Example]) -> int:
    return sum(len(one.ids) for one in together) - (len(together) - 1) * _shared(*together)


def _bundle(together: Sequence[Example]) -> Example:
    first, *others = together
    if not others:
        return first
    trunk = _shared(first, *others)
    ids, reads, starts = list(first.ids), list(first.reads), []
    for one in others:
        starts.append(len(ids))
        reads += [at - trunk + len(ids) for at in one.reads]
        ids += one.ids[trunk:]
    targets = tuple(target for one in together for target in one.targets)
    return replace(first, ids=tuple(ids), reads=tuple(reads), targets=targets, trunk=trunk, starts=tuple(starts))


def split_held_out(examples: Sequence[Example], share: float, seed: int) -> tuple[list[Example], list[Example]]:
    """Examples to train on and examples held out; a problem's examples stay together.

    Raises:
        InputError: Nothing is left to train on.
    """
    problems = list(dict.fromkeys(example.problem for example in examples))
    count = 0 if share == 0 else max(1, round(share * len(problems)))
    aside = set(Random(f"held-out:{seed}").sample(problems, min(count, len(problems))))
    trained = [example for example in examples if example.problem not in aside]
    if not trained:
        raise InputError(f"{len(problems)} problems leave nothing to train on beside those held out; give more data")
    return trained, [example for example in examples if example.problem in aside]


def batches(examples: Sequence[Example], size: int, seed: int) -> Iterator[list[Example]]:
    """Batches for ever, each epoch in another order of the seed; neighbours in length share a batch, so that little is
    spent on padding. What a batch holds depends on its number alone.
    """
    epoch = 0
    while True:
        source = Random(f"{seed}:{epoch}")
        order = list(range(len(examples)))
        source.shuffle(order)
        block = 32 * size
        made: list[list[int]] = []
        for begin in range(0, len(order), block):
            part = sorted(order[begin : begin + block], key=lambda at: len(examples[at].ids))
            made += [part[at : at + size] for at in range(0, len(part), size)]
        source.shuffle(made)
        for batch in made:
            yield [examples[at] for at in batch]
        epoch += 1


def micro_batches(batch: Sequence[Example], most: int) -> list[list[Example]]:
    """A batch in parts of at most ``most`` tokens, padding included; a longer example is a part of its own."""
    parts: list[list[Example]] = []
    for example in sorted(batch, key=lambda one: len(one.ids)):
        if parts and (len(parts[-1]) + 1) * len(example.ids) <= most:
            parts[-1].append(example)
        else:
            parts.append([example])
    return parts


def _written(
    write: Write, tokenizer: TextTokenizer, question: str, texts: Sequence[str], found: Examples
) -> Reading | None:
    try:
        return write(tokenizer, question.strip(), texts)
    except (RewardModelError, UnreadableTextError) as error:
        found.left_out[f"cannot be written ({type(error).__name__})"] += 1
        return None


def _example(row: LabelledRow, ids: Sequence[int], pairs: Sequence[tuple[int, float]]) -> Example:
    last = pairs[-1][0] + 1
    return Example(
        problem=row.given.problem.id,
        ids=tuple(ids[:last]),
        reads=tuple(at for at, _ in pairs),
        targets=tuple(value for _, value in pairs),
    )
