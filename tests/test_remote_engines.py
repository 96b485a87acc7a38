"""vLLM's and SGLang's clients against servers that answer as documented, and against ones that answer wrongly."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator, Sequence

import pytest

from fake_engines import (
    FakeGeneration,
    FakeSglang,
    FakeVllm,
    log_probability,
    logits,
    number,
    pair,
    pair_logit,
    sigmoid,
)
from fake_servers import Answer, Call, FakeServer, Respond, serving
from reward_models.errors import CapabilityError, ScoringServerError, StepCountError
from reward_models.families import (
    eurus_prm,
    internlm2_reward,
    math_shepherd,
    qwen_math_prm,
    qwen_math_rm,
    reasonflux,
    rlhflow,
    skywork_o1,
)
from reward_models.families.family import Family
from reward_models.families.implicit import ImplicitEngine
from reward_models.families.reading import Reading
from reward_models.names import parse_model_name
from reward_models.registry import load_outcome_model
from reward_models.remote.engine import RemoteEngine
from reward_models.remote.model import RemoteImplicitEngine, open_engine
from reward_models.remote.pairs import PairModel
from reward_models.remote.transport import Transport
from reward_models.types import Solution

SHEPHERD, QWEN, INTERN, RM = math_shepherd.FAMILY, qwen_math_prm.FAMILY, internlm2_reward.FAMILY, qwen_math_rm.FAMILY
TAG = math_shepherd.TAG


def tagged(length: int, tags: Sequence[int], tag: int = TAG) -> Reading:
    """Tokens 1, 2, 3 ... with a tag at some positions, read there."""
    ids = [tag if at in tags else at + 1 for at in range(length)]
    return Reading(ids=tuple(ids), reads=tuple(tags))


def last(*ids: int) -> Reading:
    """Read at the last token."""
    return Reading(ids=ids, reads=(len(ids) - 1,))


STEPS = [tagged(9, (3, 6, 8)), tagged(4, (3,)), tagged(12, (2, 5))]
WHOLES = [last(5, 6, 7, 8, 9, 10), last(5, 6), last(5, 6, 7, 11, 4)]


Opened = Callable[..., RemoteEngine]


@pytest.fixture
def engine() -> Iterator[Opened]:
    """Opens clients of fake servers, and closes them."""
    opened: list[RemoteEngine] = []

    def client(server: FakeServer, family: Family, kind: str = "vllm") -> RemoteEngine:
        opened.append(open_engine(family, parse_model_name(f"{family.name}@{kind}+{server.url}")))
        return opened[-1]

    yield client
    for one in opened:
        one.close()


def prefixes(readings: Sequence[Reading]) -> list[list[list[int]]]:
    return [[list(reading.ids[: at + 1]) for at in reading.reads] for reading in readings]


def at_reads(readings: Sequence[Reading], columns: int) -> list[list[float]]:
    found = [[logits(ids, columns) for ids in part] for part in prefixes(readings)]
    return [[row[-1] - row[0] if columns == 2 else row[0] for row in part] for part in found]


def same(scores: Sequence[Sequence[float]], expected: Sequence[Sequence[float]], tolerance: float = 1e-9) -> None:
    assert [len(part) for part in scores] == [len(part) for part in expected]
    for part, wanted in zip(scores, expected, strict=True):
        assert part == pytest.approx(wanted, abs=tolerance)


@pytest.mark.parametrize("pooling", ["STEP", "ALL"])
def test_vllm_rows_at_the_steps(pooling: str, engine: Opened) -> None:
    with serving(FakeVllm(pooling=pooling, tag=TAG)) as server:
        same(engine(server, SHEPHERD).raw_scores(STEPS), at_reads(STEPS, 1))
        sent = [call.body for call in server.calls if call.path == "/pooling"]
    assert [body["use_activation"] for body in sent] == [False, True, False]  # the self-test, then the scores
    assert all(body["task"] == "token_classify" and body["add_special_tokens"] is False for body in sent)
    assert sent[-1]["input"] == [list(reading.ids) for reading in STEPS]


def test_vllm_two_labels_are_good_minus_bad(engine: Opened) -> None:
    steps = [tagged(9, (3, 6, 8), qwen_math_prm.TAG), tagged(7, (1, 6), qwen_math_prm.TAG)]
    with serving(FakeVllm(columns=2, tag=qwen_math_prm.TAG)) as server:
        same(engine(server, QWEN).raw_scores(steps), at_reads(steps, 2))


def test_vllm_positions_without_a_tag_need_every_row(engine: Opened) -> None:
    readings = [Reading(ids=(1, 2, 3, 4, 5, 6), reads=(2, 5)), Reading(ids=(1, 2, 7), reads=(2,))]
    with serving(FakeVllm(pooling="ALL")) as server:
        same(engine(server, rlhflow.PRM).raw_scores(readings), at_reads(readings, 1))
    with (
        serving(FakeVllm(pooling="STEP", tag=3)) as server,
        pytest.raises(StepCountError, match='"pooling_type": "ALL"'),
    ):
        engine(server, rlhflow.PRM).raw_scores(readings)


def test_vllm_rows_at_other_places_are_not_taken_for_the_steps(engine: Opened) -> None:
    """Two tokens are read and two rows come, but pooled at another token."""
    reading = Reading(ids=(1, 8, 3, 8, 5, 6), reads=(2, 5))
    with serving(FakeVllm(pooling="STEP", tag=8)) as server, pytest.raises(ScoringServerError, match="other positions"):
        engine(server, rlhflow.PRM).raw_scores([reading])


def test_vllm_classifiers_are_asked_at_classify(engine: Opened) -> None:
    with serving(FakeVllm(task="classify")) as server:
        same(engine(server, INTERN).raw_scores(WHOLES), at_reads(WHOLES, 1))
        assert server.paths() == ["/v1/models", "/classify", "/classify", "/classify"]
        assert server.calls[-1].body["use_activation"] is False


def test_vllm_outcome_from_all_pooling_takes_the_last_row(engine: Opened) -> None:
    with serving(FakeVllm(pooling="ALL")) as server:
        same(engine(server, INTERN).raw_scores(WHOLES), at_reads(WHOLES, 1))
        same(engine(server, RM).raw_scores(WHOLES), at_reads(WHOLES, 1))


def test_vllm_head_without_activation(engine: Opened) -> None:
    with serving(FakeVllm(task="classify", fault="regression")) as server:
        same(engine(server, INTERN).raw_scores(WHOLES), at_reads(WHOLES, 1))


def test_vllm_documented_math_shepherd_configuration_is_refused(engine: Opened) -> None:
    """0.32 answers its documented STEP configuration by the task token_embed only."""
    with serving(FakeVllm(task="token_embed", fault="hidden-dimensions", tag=TAG)) as server:
        with pytest.raises(ScoringServerError) as caught:
            engine(server, SHEPHERD).raw_scores(STEPS)
        assert "/generative_scoring" in server.paths()
    said = str(caught.value)
    assert (
        "does not give this family's scores; start it with: vllm serve peiyi9979/math-shepherd-mistral-7b-prm" in said
    )
    assert '--hf-overrides \'{"method": "from_2_way_softmax", "classifier_from_token": ["▁-", "▁+"]}\'' in said
    assert '--pooler-config \'{"task": "token_classify", "pooling_type": "STEP", "step_tag_id": 12902}\'' in said
    assert "\n" not in said
    assert not caught.value.retryable


@pytest.mark.parametrize(
    ("fault", "columns", "words"),
    [
        ("hidden-dimensions", 1, "rows have 2 numbers where this family's head gives 1"),
        ("ignores-activation", 1, "ignores use_activation"),
        ("always-activated", 1, "ignores use_activation"),
        ("wide", 1, "rows have 2 numbers where this family's head gives 1"),
        ("nan", 1, "no list of finite numbers"),
        ("flat", 1, "one vector of 16 numbers a sequence"),
    ],
)
def test_vllm_wrong_math_shepherd_servers(fault: str, columns: int, words: str, engine: Opened) -> None:
    with serving(FakeVllm(columns=columns, tag=TAG, fault=fault)) as server:
        with pytest.raises(ScoringServerError, match=words) as caught:
            engine(server, SHEPHERD).raw_scores(STEPS)
    assert fault == "nan" or "start it with: vllm serve" in str(caught.value)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("hidden-dimensions", "no logits of this model's head"),
        ("ignores-activation", "ignores use_activation"),
        ("always-activated", "ignores use_activation"),
    ],
)
def test_vllm_plausible_numbers_of_two_columns_are_told_from_logits(fault: str, words: str, engine: Opened) -> None:
    """Two hidden dimensions a step have the shape of two logits a step; only the activation gives them away."""
    steps = [tagged(9, (3, 6, 8), qwen_math_prm.TAG)]
    with serving(FakeVllm(columns=2, tag=qwen_math_prm.TAG, fault=fault)) as server:
        with pytest.raises(ScoringServerError, match=words):
            engine(server, QWEN).raw_scores(steps)


@pytest.mark.parametrize("fault", ["short", "one-result"])
def test_vllm_wrong_counts_are_errors(fault: str, engine: Opened) -> None:
    with serving(FakeVllm(tag=TAG, fault=fault)) as server, pytest.raises(StepCountError, match="the server answered"):
        engine(server, SHEPHERD).raw_scores(STEPS)


def test_vllm_a_server_that_turns_wrong_later_is_caught(engine: Opened) -> None:
    fake = FakeVllm(tag=TAG)
    with serving(fake) as server:
        client = engine(server, SHEPHERD)
        client.raw_scores(STEPS)
        fake.fault = "short"
        with pytest.raises(StepCountError, match="2 rows for 3 steps"):
            client.raw_scores(STEPS[:1])


def test_vllm_generation_server_scores_prefixes(engine: Opened) -> None:
    with serving(FakeGeneration()) as server:
        scores = engine(server, SHEPHERD).raw_scores(STEPS)
        assert server.paths()[-1] == "/generative_scoring"
        assert server.calls[-1].body["label_token_ids"] == [648, 387]
    same(scores, [[pair(ids, 648, 387) for ids in part] for part in prefixes(STEPS)])


def test_vllm_certain_probabilities_saturate(engine: Opened) -> None:
    with serving(FakeGeneration(fault="certain")) as server:
        scores = engine(server, SHEPHERD).raw_scores([tagged(9, (3, 6))])
    same(scores, [[-37.0, 37.0]])
    assert 1 / (1 + math.exp(-37.0)) == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize(("fault", "words"), [("short", "2 scores for 3 steps"), ("above", "where a probability")])
def test_vllm_generation_server_answers_wrongly(fault: str, words: str, engine: Opened) -> None:
    with (
        serving(FakeGeneration(fault=fault)) as server,
        pytest.raises((ScoringServerError, StepCountError), match=words),
    ):
        engine(server, SHEPHERD).raw_scores(STEPS[:1])


def test_vllm_truncation_by_the_server_is_not_risked(engine: Opened) -> None:
    """A generation server cuts what is too long without a word, so that is not sent."""
    with serving(FakeGeneration(limit=8)) as server, pytest.raises(ScoringServerError, match="more than the 7 tokens"):
        engine(server, SHEPHERD).raw_scores(STEPS)


def test_token_log_probabilities(engine: Opened) -> None:
    reading = Reading(ids=(5, 6, 7, 8, 9), reads=(1, 2, 3), counts=(2, 1))
    expected = [[log_probability(reading.ids, at + 1) for at in reading.reads]]
    for kind, fake in (("vllm", FakeGeneration()), ("sglang", FakeSglang())):
        respond: Respond = fake
        with serving(respond) as server:
            same(engine(server, eurus_prm.FAMILY, kind).raw_scores([reading]), expected)
    with serving(FakeGeneration(fault="no-prompt-logprobs")) as server:
        with pytest.raises(ScoringServerError, match="prompt_logprobs"):
            engine(server, eurus_prm.FAMILY).raw_scores([reading])


def test_implicit_rewards_from_two_servers(engine: Opened) -> None:
    reading = Reading(ids=(5, 6, 7, 8, 9), reads=(1, 2, 3), counts=(2, 1))
    with serving(FakeGeneration()) as policy, serving(FakeGeneration()) as reference:
        one, other = engine(policy, eurus_prm.FAMILY), engine(reference, eurus_prm.FAMILY)
        implicit = RemoteImplicitEngine(one, other, 0.5)
        same(implicit.raw_scores([reading]), [[0.0, 0.0, 0.0]])
        assert implicit.fingerprint == ImplicitEngine(one, other, 0.5).fingerprint


def test_sglang_scores_prefixes(engine: Opened) -> None:
    with serving(FakeSglang()) as server:
        scores = engine(server, SHEPHERD, "sglang").raw_scores(STEPS)
    same(scores, [[pair(ids, 648, 387) for ids in part] for part in prefixes(STEPS)])


def test_sglang_classifies_at_the_last_token(engine: Opened) -> None:
    with serving(FakeSglang(embedding=True)) as server:
        same(engine(server, INTERN, "sglang").raw_scores(WHOLES), at_reads(WHOLES, 1))
        same(engine(server, RM, "sglang").raw_scores(WHOLES), at_reads(WHOLES, 1))


@pytest.mark.parametrize(
    ("family", "fake", "words"),
    [
        (SHEPHERD, FakeSglang(embedding=True), r"no such route; start it with: python -m sglang\.launch_server"),
        (SHEPHERD, FakeSglang(fault="zero"), "probabilities above 0"),
        (SHEPHERD, FakeSglang(fault="short"), "5 scores for 6 steps|3 scores for 4 steps"),
        (QWEN, FakeSglang(), "no pooling at steps"),
        (INTERN, FakeSglang(embedding=True, fault="hidden"), "a vector of 16 numbers where one score.*--is-embedding"),
        (INTERN, FakeSglang(embedding=True, fault="short"), "1 results for 2 sequences"),
        (INTERN, FakeSglang(), "no such route"),
    ],
)
def test_sglang_wrong_servers(family: Family, fake: FakeSglang, words: str, engine: Opened) -> None:
    readings = STEPS if family.kind == "process" else WHOLES
    with serving(fake) as server, pytest.raises((ScoringServerError, StepCountError), match=words):
        engine(server, family, "sglang").raw_scores(readings)


def test_order_is_kept_over_servers_and_parts(engine: Opened) -> None:
    readings = [tagged(3 + at, (2 + at,)) for at in range(100)]
    with serving(FakeVllm(tag=TAG)) as first, serving(FakeVllm(tag=TAG)) as second:
        name = parse_model_name(f"math-shepherd@vllm+{first.url},vllm+{second.url}")
        scores = open_engine(SHEPHERD, name).raw_scores(readings)
        assert min(len(first.calls), len(second.calls)) > 1
        assert max(len(call.body["input"]) for call in first.calls + second.calls if call.body) <= 16
    same(scores, at_reads(readings, 1))


def test_the_self_test_runs_once_for_callers_at_the_same_time(engine: Opened) -> None:
    async def together(client: RemoteEngine) -> None:
        await asyncio.gather(*(client.araw_scores([reading]) for reading in STEPS))
        await client.aclose()

    with serving(FakeVllm(tag=TAG)) as server:
        asyncio.run(together(engine(server, SHEPHERD)))
        flags = [call.body["use_activation"] for call in server.calls if call.body]
    assert flags.count(True) == 1


def test_a_passing_failure_in_the_self_test_is_retryable_and_not_remembered(engine: Opened) -> None:
    healthy = FakeVllm(tag=TAG)
    ill = [True]

    def respond(call: Call) -> Answer:
        return Answer({"error": "warming up"}, status=503) if ill[0] and call.path != "/v1/models" else healthy(call)

    with serving(respond) as server:
        client = engine(server, SHEPHERD)

        async def no_pause(_: float) -> None:
            ill[0] = False

        client.transport._sleep = no_pause
        same(client.raw_scores(STEPS), at_reads(STEPS, 1))


@pytest.mark.parametrize("kind", ["vllm", "sglang"])
def test_wrong_addresses_and_mixed_servers(kind: str, engine: Opened) -> None:
    with (
        serving(lambda _: Answer({"data": []})) as server,
        pytest.raises(ScoringServerError, match=r"no (vLLM|SGLang) server"),
    ):
        engine(server, SHEPHERD, kind)

    def of(name: str) -> Respond:
        return lambda _: Answer({"data": [{"id": name}], "model_path": name})

    with serving(of("a")) as first, serving(of("b")) as second:
        name = parse_model_name(f"math-shepherd@{kind}+{first.url},{kind}+{second.url}")
        with pytest.raises(ScoringServerError, match="serve different models"):
            open_engine(SHEPHERD, name)


def test_nothing_to_score_asks_nothing(engine: Opened) -> None:
    with serving(FakeVllm()) as server:
        assert engine(server, SHEPHERD).raw_scores([]) == []
        assert server.paths() == ["/v1/models"]


def test_fingerprint_names_engine_address_and_model(engine: Opened) -> None:
    with serving(FakeVllm()) as server:
        client = engine(server, SHEPHERD)
    assert client.fingerprint == f"vllm math-shepherd@vllm+{server.url} served org/checkpoint"
    assert client.context == 4096
    assert number([1]) != number([2])


PAIRS = [Solution(question=" q ", text=f"{at} is right.\n") for at in range(40)]


def test_vllm_pairs_go_to_score() -> None:
    odd = [
        Solution(question="q", text=" "),
        Solution(question="q", text="\ud800"),
        Solution(question="q", text="x" * 99),
    ]
    with serving(FakeVllm(task="classify", limit=64)) as server:
        model = load_outcome_model(f"cross-encoder@vllm+{server.url}")
        assert isinstance(model, PairModel)
        scores = model.score([*PAIRS[:3], *odd, *PAIRS[3:]])
        model.close()
        assert {call.body["use_activation"] for call in server.calls[3:]} == {False}
        assert max(len(call.body["text_2"]) for call in server.calls if call.body) <= 16
    read = [*scores[:3], *scores[6:]]
    assert [score.raw for score in read] == [pair_logit("q", solution.text.strip()) for solution in PAIRS]
    assert [score.value for score in read] == pytest.approx([sigmoid(score.raw or 0.0) for score in read])
    codes = [score.unscored.code if score.unscored else None for score in scores[3:6]]
    assert codes == ["empty_step", "unreadable", "past_context"]
    assert model.usage.prompt_tokens > 5 * 40


@pytest.mark.parametrize(
    ("fault", "words"), [("always-activated", "not the logistic function"), ("short", "3 scores for 4 pairs")]
)
def test_vllm_wrong_pair_scores_are_refused(fault: str, words: str) -> None:
    with serving(FakeVllm(task="classify", fault=fault)) as server:
        model = PairModel(
            parse_model_name(f"cross-encoder@vllm+{server.url}"), Transport([server.url], model="cross-encoder")
        )
        with pytest.raises((ScoringServerError, StepCountError), match=words):
            model.score(PAIRS)
        model.close()


def test_vllm_pairs_of_a_regression_head_and_wrong_servers() -> None:
    with serving(FakeVllm(task="classify", fault="regression")) as server:
        model = load_outcome_model(f"cross-encoder@vllm+{server.url}")
        assert model.score(PAIRS[:1])[0].raw == pair_logit("q", "0 is right.")
    with serving(FakeVllm()) as server, pytest.raises(ScoringServerError, match="404"):
        load_outcome_model(f"cross-encoder@vllm+{server.url}").score(PAIRS)
    with pytest.raises(CapabilityError, match=r"cross-encoder@vllm\+http"):
        load_outcome_model("cross-encoder:BAAI/bge-reranker-v2-m3")


@pytest.mark.parametrize("family", [skywork_o1.FAMILY, reasonflux.SMALL])
def test_heads_that_no_server_has_a_class_for(family: Family) -> None:
    with pytest.raises(CapabilityError, match=f"serve-reward-model {family.name}` there and use {family.name}@http://"):
        open_engine(family, parse_model_name(f"{family.name}@vllm+http://127.0.0.1:1"))
