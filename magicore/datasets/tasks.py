"""Generated tasks: ``gen:NAME:N[:SEED[:SPLIT]]``, our own or any task of reasoning-gym."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import NamedTuple

from magicore.datasets.families import FAMILIES, draw_family, family_id
from magicore.datasets.families.plan import Split
from magicore.datasets.generate import GENERATORS, generate
from magicore.datasets.problems import problem_row
from magicore.datasets.readers import plain
from magicore.errors import InputError, MissingExtraError, UnknownNameError
from magicore.store.json_lines import Record

OWN = (*GENERATORS, *FAMILIES)
"""The tasks that need no other package; the families come with worked solutions and have two splits."""


class TaskName(NamedTuple):
    """The parts of ``gen:NAME:N[:SEED[:SPLIT]]``."""

    name: str
    n: int
    seed: int
    split: Split = "test"


def parse_task_name(source: str) -> TaskName:
    """Take the name apart; the seed is 0 and the split ``test`` where they are not given.

    Raises:
        InputError: It has not the form ``gen:NAME:N[:SEED[:SPLIT]]`` with N at least 1, or the task has no splits.
    """
    name, *numbers = source.removeprefix("gen:").split(":")
    split: Split = "test"
    if len(numbers) == 3 and name in FAMILIES:
        if numbers[2] not in ("train", "test"):
            raise InputError(f"{source}: the split is train or test, not {numbers[2]!r}")
        split = "train" if numbers[2] == "train" else "test"
        numbers = numbers[:2]
    if not name or len(numbers) not in (1, 2) or not all(part.isascii() and part.isdigit() for part in numbers):
        raise InputError(f"{source}: write gen:NAME:N:SEED, such as gen:sums:24:7 or gen:gsm_symbolic:200:7")
    n, seed = int(numbers[0]), int(numbers[1]) if len(numbers) > 1 else 0
    if n < 1:
        raise InputError(f"{source}: N, the number of problems, is at least 1")
    return TaskName(name, n, seed, split)


def task_records(source: str) -> Iterator[Record]:
    """The tasks as objects of a problems file.

    Raises:
        InputError: The name is malformed, or the task cannot be made.
        UnknownNameError: There is no such task; suggests near ones.
        MissingExtraError: It may be a task of reasoning-gym, which is not installed.
    """
    task = parse_task_name(source)
    if task.name in FAMILIES:
        for index, drawn in enumerate(draw_family(task.name, task.n, task.seed, task.split)):
            row: dict[str, object] = {"id": family_id(task.name, task.split, task.seed, index)}
            row |= {"question": drawn.question, "answer": drawn.answer, "kind": drawn.arithmetic.kind}
            row["solution"] = "\n".join(drawn.steps)
            yield Record(f"{source}, problem {row['id']}", row)
        return
    if task.name in GENERATORS:
        for problem in generate(task.name, task.n, task.seed):
            yield Record(f"{source}, problem {problem.id}", problem_row(problem))
        return
    yield from _reasoning_gym(task, source)


def _reasoning_gym(task: TaskName, source: str) -> Iterator[Record]:
    try:
        import reasoning_gym
        from reasoning_gym.factory import DATASETS
    except ImportError:
        raise MissingExtraError(
            f"{source}: {task.name!r} is none of our own tasks ({', '.join(OWN)}); those of reasoning-gym need "
            "it installed: pip install 'magicore[tasks]'"
        ) from None
    names = [*OWN, *DATASETS]
    if task.name not in DATASETS:
        near = get_close_matches(task.name, names, n=3)
        hint = f"; did you mean {' or '.join(near)}?" if near else f"; there are {len(names)}, {names[0]} among them"
        raise UnknownNameError(f"{source}: no task {task.name!r}{hint}")
    try:
        for number, item in enumerate(reasoning_gym.create_dataset(task.name, size=task.n, seed=task.seed)):
            row = {"id": f"{task.name}-{number}", "question": item["question"], "answer": item["answer"]}
            yield Record(f"{source}, problem {number}", row | {"metadata": plain(item["metadata"])})
    except (AssertionError, ValueError) as error:
        raise InputError(f"{source}: reasoning-gym cannot make it ({error})") from None
