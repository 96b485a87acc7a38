"""The forest of shared prefixes and its packs: every token of every sequence is somewhere, once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_models.local.trie import common_prefix, pack, plant

SEQUENCES = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=24).map(tuple), min_size=1, max_size=12)


def spelled(forest, sequence: int) -> tuple[int, ...]:
    path = list(forest.path(forest.last[sequence]))[::-1]
    return tuple(token for index in path for token in forest.segments[index].ids)


@given(SEQUENCES, st.integers(1, 9), st.integers(1, 30))
def test_the_segments_of_each_sequence_spell_it(sequences, least, longest) -> None:
    forest = plant(sequences, least_shared=least, longest=longest)
    assert [spelled(forest, index) for index in range(len(sequences))] == sequences
    for index, segment in enumerate(forest.segments):
        assert 1 <= len(segment.ids) <= longest
        assert segment.parent is None or segment.parent < index
        assert segment.start == (0 if segment.parent is None else forest.segments[segment.parent].end)
    assert forest.tokens <= sum(map(len, set(sequences)))


@given(SEQUENCES)
def test_every_position_is_located_where_its_token_is(sequences) -> None:
    forest = plant(sequences, least_shared=1)
    for index, sequence in enumerate(sequences):
        places = forest.locate(index, range(len(sequence)))
        assert [forest.segments[segment].ids[offset] for segment, offset in places] == list(sequence)


@given(SEQUENCES, st.integers(1, 40))
def test_packs_hold_every_segment_once_and_keep_what_later_ones_need(sequences, budget) -> None:
    forest = plant(sequences, least_shared=1, longest=budget)
    packs = pack(forest, budget)
    assert [index for group in packs for index in group.segments] == list(range(len(forest.segments)))
    there: set[int] = set()
    for group in packs:
        assert sum(len(forest.segments[index].ids) for index in group.segments) <= budget
        for index in group.segments:
            assert set(forest.path(forest.segments[index].parent)) <= there | set(group.segments)
        there = {index for index in there | set(group.segments) if index in group.keep}
    assert not there, "nothing is kept after the last pack"


def test_a_question_is_computed_once_for_all_its_chains_and_shared_steps_too() -> None:
    question, first = tuple(range(100)), tuple(range(100, 120))
    chains = [question + first + (200 + i,) * 10 for i in range(3)] + [question + (300,) * 15]
    forest = plant(chains)
    assert forest.tokens == 100 + 20 + 3 * 10 + 15
    assert plant([*chains, chains[0]]).tokens == forest.tokens


def test_a_short_common_run_is_not_worth_a_segment() -> None:
    assert len(plant([(1, 2, 3, 4), (1, 2, 5, 6)], least_shared=3).segments) == 2
    assert len(plant([(1, 2, 3, 4), (1, 2, 5, 6)], least_shared=2).segments) == 3


def test_common_prefix() -> None:
    assert common_prefix((1, 2, 3), (1, 2, 4, 5)) == 2
    assert common_prefix((1, 2), (1, 2, 4)) == 2
    assert common_prefix((), (1,)) == 0


def test_an_empty_sequence_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        plant([(), (1, 2)])
