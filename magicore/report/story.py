"""One problem's story for the terminal: chains with coloured step scores, reviews, verdict, votes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from difficulty import Verdict
from difficulty.conditions import CONFIDENCE_THRESHOLD
from magicore.store.chain_rows import ChainRecord
from magicore.store.story import Story
from magicore.types import Result, Review, ScoredChain

GOOD, DOUBTFUL = 0.8, 0.55
"""Step scores from which on a step is shown green, and yellow; below, where reviewers look (under 6/10), red."""


def story(told: Story) -> Iterator[RenderableType]:
    """The story from top to bottom: question, rounds, vote, answer, cost."""
    result = told.result.result
    yield _heading(told)
    by_round: dict[int, list[ChainRecord]] = {}
    for record in told.chains:
        by_round.setdefault(record.scored.chain.round, []).append(record)
    reviews: dict[int, list[Review]] = {}
    for review in told.reviews:
        reviews.setdefault(review.round, []).append(review)
    for number in sorted(by_round.keys() | reviews.keys()):
        yield Rule("first chains" if number == 0 else f"round {number}", align="left")
        yield from _round(by_round.get(number, []), reviews.get(number, []), result)
        if number == 0 and result.verdict is not None:
            yield _verdict(result.verdict)
    yield Rule("answer", align="left")
    if result.votes:
        yield _votes(result)
    for one in result.abstained:
        yield _line(("abstains: ", "dim"), (f"{one.chain} ({one.reason})", ""))
    yield _answer(result)
    for warning in result.warnings:
        yield _line(("warning: ", "yellow"), (warning, ""))
    if result.usage:
        yield _usage(result)


def plain(text: str) -> str:
    """Model text without control characters, which a terminal would obey."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def _line(*parts: tuple[str, str]) -> Text:
    return Text.assemble(*[(plain(text), style) for text, style in parts])


def _heading(told: Story) -> Text:
    result = told.result.result
    text = _line((result.id, "bold"), (f"  {result.method}", "cyan"))
    if result.gold is not None:
        text.append_text(_line(("  gold ", "dim"), (result.gold, "")))
    if told.question is not None:
        return text.append_text(_line(("\n" + told.question.strip(), "")))
    return text.append_text(_line((f"\n(no question to show: {told.why_no_question})", "dim")))


def _round(records: Sequence[ChainRecord], reviews: Sequence[Review], result: Result) -> Iterator[RenderableType]:
    """The round's reviews, by the chain they are about, and its new chains, each after the reviews it answers."""
    about: dict[str, list[Review]] = {}
    for review in reviews:
        about.setdefault(review.chain, []).append(review)
    for record in records:
        for review in about.pop(record.scored.chain.parent or "", ()):
            yield from _review(review)
        yield from _chain(record, result)
    for rest in about.values():
        for review in rest:
            yield from _review(review)


def _chain(record: ChainRecord, result: Result) -> Iterator[RenderableType]:
    scored, chain = record.scored, record.scored.chain
    head = _line((chain.id, "bold"))
    if chain.parent is not None:
        head.append_text(_line((f" from {chain.parent}", "dim")))
    head.append_text(_line(("  answer ", "dim"), (chain.answer or f"none ({chain.no_answer})", "bold")))
    for name, value in (("o", scored.o), ("s", scored.s), ("S", scored.combined)):
        if value is not None:
            head.append_text(_line((f"  {name} ", "dim"), (f"{value:.4g}", "")))
    if record.kept:
        head.append_text(_line((f"  kept after round {', '.join(map(str, record.kept))}", "dim")))
    if chain.id == result.chain:
        head.append_text(_line(("  chosen", "green")))
    if chain.stop != "stop":
        head.append_text(_line((f"  ended by {chain.stop}", "yellow")))
    yield head
    yield Padding(_steps(scored), (0, 0, 1, 2))


def _steps(scored: ScoredChain) -> RenderableType:
    if scored.prm is None:
        return _line((scored.chain.text.strip(), ""))
    table = Table.grid(padding=(0, 2))
    for step, score in zip(scored.prm.steps, scored.prm.scores, strict=True):
        if score.value is None:
            shown, why = "-", f"  ({score.unscored.code})" if score.unscored is not None else ""
            table.add_row(_line((shown, "dim")), _line((step.text.strip() + why, "")))
            continue
        style = "green" if score.value >= GOOD else "yellow" if score.value >= DOUBTFUL else "red"
        table.add_row(_line((f"{score.value:.2f}", style)), _line((step.text.strip(), style)))
    return table


def _review(review: Review) -> Iterator[RenderableType]:
    who = "meta-review" if review.role == "meta-reviewer" else f"{review.role} {review.instance}"
    head = _line((who, "bold magenta"), (f" on {review.chain}", "dim"))
    if review.decision is not None:
        style = "green" if review.decision == "right" else "red"
        head.append_text(_line(("  decision ", "dim"), (review.decision, style)))
    elif review.role == "meta-reviewer":
        head.append_text(_line(("  decision unstated", "yellow")))
    if review.confidence is not None:
        head.append_text(_line(("  confidence ", "dim"), (f"{review.confidence:.3g}", "")))
    if review.answer is not None:
        head.append_text(_line(("  recommends ", "dim"), (review.answer, "")))
    yield head
    yield Padding(_line((review.text.strip(), "")), (0, 0, 1, 2))


def _verdict(verdict: Verdict) -> Text:
    """Easy or hard, and why."""
    text = _line(
        ("verdict ", "dim"),
        ("easy" if verdict.easy else "hard", "bold green" if verdict.easy else "bold red"),
        (f" by the {verdict.router} router", "dim"),
    )
    if verdict.condition_1 is not None:
        z = "no z" if verdict.z is None else f"mean z of the majority {verdict.z:.4f}"
        text.append_text(_line((f"\n  condition 1 {_held(verdict.condition_1)}: {z}, 0 is needed", "")))
    if verdict.condition_2 is not None:
        values = ", ".join(
            f"{name} {'none' if value is None else f'{value:.4f}'}"
            for name, value in (("o", verdict.confidence_orm), ("s", verdict.confidence_prm))
        )
        needed = f"{CONFIDENCE_THRESHOLD:g} of both is needed"
        text.append_text(_line((f"\n  condition 2 {_held(verdict.condition_2)}: confidence {values}, {needed}", "")))
    return text


def _held(holds: bool) -> str:
    return "holds" if holds else "fails"


def _votes(result: Result) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("answer")
    for title in ("chains", "weight"):
        table.add_column(title, justify="right")
    for vote in result.votes:
        weight = "-" if vote.weight is None else f"{vote.weight:.4f}"
        table.add_row(_line((vote.answer, "")), str(vote.count), weight)
    return table


def _answer(result: Result) -> Text:
    if result.error is not None:
        return _line(("failed: ", "bold red"), (f"{result.error.type}: {result.error.message}", ""))
    styles = {True: ("  right", "bold green"), False: ("  wrong", "bold red"), None: ("", "")}
    return _line(
        ("answer ", "dim"),
        (result.answer or "none", "bold"),
        styles[result.correct],
        (f"  chain {result.chain}" if result.chain is not None else "", "dim"),
        (f"  ended: {result.stop}", "dim"),
    )


def _usage(result: Result) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in ("role", "model"):
        table.add_column(title)
    for title in ("calls", "prompt", "completion"):
        table.add_column(title, justify="right")
    for spent in result.usage:
        usage = spent.usage
        note = f" (+{usage.unmetered} unmetered)" if usage.unmetered else ""
        table.add_row(
            _line((spent.role, "")),
            _line((spent.model, "")),
            f"{usage.calls:,}{note}",
            f"{usage.prompt:,}",
            f"{usage.completion:,}",
        )
    return table
