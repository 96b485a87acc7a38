"""Training: what is written loads like any other model and gives what the trainee gave; interrupted equals not."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft")

from safetensors.torch import load_file
from typer.testing import CliRunner

from magicore.cli.app import app
from magicore.datasets import load_problems
from magicore.errors import InputError, StoreError, UnknownNameError
from magicore.llms.base import Request, Sampling, messages
from magicore.llms.registry import open_model
from magicore.prompts import load_prompts
from magicore.training import train as training
from magicore.training.conversations import feedback_from_labels, read_conversations, refining_conversations
from magicore.training.examples import (
    Example,
    batches,
    bundled,
    conversation_examples,
    micro_batches,
    outcome_examples,
    split_held_out,
    step_examples,
)
from magicore.training.labels import read_labels
from magicore.training.loop import rate_at
from magicore.training.train import TrainingConfig, train
from magicore.training.trainee import find_base, open_trainee, padded
from magicore.types import CallKey
from reward_models.errors import CheckpointError, TagInTextError
from reward_models.families import math_shepherd
from reward_models.families.scoring import FamilyProcessModel
from reward_models.families.tokens import TextTokenizer
from reward_models.local.adapter import Adapter, base_of, is_adapter
from reward_models.local.embedded import adapter_folder
from reward_models.registry import load_outcome_model, load_process_model
from reward_models.steps import split_steps
from reward_models.types import Solution
from tiny_trainees import labelled, tiny_base, tokenizer, write_rows


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_base(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return labelled(tmp_path_factory.mktemp("data") / "labels.jsonl")


def settings(base: Path, **more: Any) -> TrainingConfig:
    chosen: dict[str, Any] = {
        "base": str(base),
        "rank": 4,
        "batch": 8,
        "steps": 30,
        "learning_rate": 2e-2,
        "held_out": 0.2,
        "evaluate_every": 15,
        "device": "cpu",
        "adapter_dtype": "float32",
        "precision": "fp32",
        **more,
    }
    return TrainingConfig(**chosen)


# Examples


def test_a_language_model_learns_the_answer_and_its_end_and_nothing_else() -> None:
    words = tokenizer()
    talk = (*messages(("user", "Hi")), *messages(("assistant", "ok")))
    (one,) = conversation_examples([("p", talk)], words, 100).kept
    prompt = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    ids = words(prompt + "ok<|im_end|>", add_special_tokens=False)["input_ids"]
    assert list(one.ids) == ids[:-1]
    assert [words.decode([int(target)]) for target in one.targets] == ["o", "k", "<|im_end|>"]
    assert [ids[at + 1] for at in one.reads] == [int(target) for target in one.targets]


def test_step_examples_read_the_tags_and_pass_over_what_has_no_label(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "question": "Q?", "steps": ["one", "two", "three"], "step_labels": [1, None, 0], "outcome": False},
        {"id": "b", "question": "Q?", "steps": ["one"], "step_labels": [None], "outcome": None},
        {"id": "c", "question": "Qки?", "steps": ["one"], "step_labels": [1], "outcome": True},
        {"id": "d", "question": "Q" * 300, "steps": ["one"], "step_labels": [1], "outcome": True},
    ]
    read = read_labels(write_rows(tmp_path / "labels.jsonl", rows))
    words = TextTokenizer(tokenizer())
    declared = math_shepherd.declare(words)
    write = math_shepherd.FAMILY.adapted(declared, words).write
    found = step_examples(read, words, write, 200)
    (one,) = found.kept
    assert words.backend.decode(one.ids) == "Q? one ки\ntwo ки\nthree ки"
    assert one.targets == (1.0, 0.0)
    assert [words.backend.decode(one.ids[: at + 1])[-6:] for at in one.reads] == ["one ки", "ree ки"]
    assert found.left_out == Counter({"no step has a label": 1, "cannot be written (TagInTextError)": 1, "too long": 1})
    assert [one.targets for one in outcome_examples(read, words, write, 900).kept] == [(0.0,), (1.0,)]


def test_math_shepherds_own_vocabulary_is_still_required_where_nothing_is_declared() -> None:
    with pytest.raises(CheckpointError, match="reads token"):
        math_shepherd.FAMILY.adapted(None, TextTokenizer(tokenizer())).check_tokenizer(TextTokenizer(tokenizer()))
    with pytest.raises(CheckpointError, match="trained as trl-prm"):
        math_shepherd.FAMILY.adapted({"family": "trl-prm"}, TextTokenizer(tokenizer()))
    with pytest.raises(TagInTextError):
        math_shepherd.write_apart(TextTokenizer(tokenizer()), "q", ["a ки"], tag=(1,))


def some(count: int) -> list[Example]:
    return [Example(problem=f"p{at // 2}", ids=tuple(range(at + 2)), reads=(0,), targets=(1.0,)) for at in range(count)]


def test_batches_hold_every_example_once_an_epoch_and_follow_the_seed() -> None:
    first = list(islice(batches(some(10), 4, 5), 6))
    assert Counter(len(one.ids) for batch in first[:3] for one in batch) == Counter(range(2, 12))
    assert first == list(islice(batches(some(10), 4, 5), 6))
    assert first != list(islice(batches(some(10), 4, 6), 6))
    assert [len(part) for part in micro_batches(some(4), 8)] == [2, 1, 1], "2 x 3, then 4, then 5 tokens"


def test_held_out_problems_are_never_trained_on() -> None:
    trained, aside = split_held_out(some(10), 0.4, 1)
    assert len(aside) == 4
    assert not {one.problem for one in trained} & {one.problem for one in aside}
    with pytest.raises(InputError, match="nothing to train on"):
        split_held_out(some(2), 0.5, 1)


def test_the_learning_rate_by_hand() -> None:
    config = TrainingConfig(kind="prm", learning_rate=1.0, warmup=0.2)
    assert [rate_at(step, 10, config) for step in (0, 1, 2, 6, 9)] == [0.5, 1.0, 1.0, 0.5, 0.125]
    assert rate_at(0, 4, TrainingConfig(kind="prm", learning_rate=1.0, warmup=0)) == 1.0


# Training and loading


@pytest.mark.parametrize("head", ["math-shepherd", "trl-prm"])
def test_a_process_model_learns_and_loads_by_its_family(head: str, base: Path, data: Path, tmp_path: Path) -> None:
    config = settings(base, kind="prm", head=head)
    made = train(config, data, tmp_path / "prm", progress=False)
    assert made.name == f"{head}:{tmp_path / 'prm'}"
    assert [point.step for point in made.curve] == [15, 30]
    assert made.curve[-1].held_out_auroc == 1.0
    assert made.curve[-1].loss is not None
    assert made.curve[0].loss is not None
    assert made.curve[-1].loss < made.curve[0].loss
    files = {file.name for file in (tmp_path / "prm").iterdir()}
    assert files >= {"adapter_config.json", "adapter_model.safetensors", "reward_model.json", "training.json"}
    assert not files & {"checkpoint.safetensors", "checkpoint.json", "model.safetensors"}
    model = load_process_model(made.name, device="cpu", dtype="fp32")
    good, bad = "Step 1: 3 ok\nStep 2: 3 ok", "Step 1: 3 ok\nStep 2: 3 no"
    scored = model.score([Solution(question="Q9?", text=text, steps=split_steps(text)) for text in (good, bad)])
    values = [[step.value for step in one.scores] for one in scored]
    assert values[0][1] is not None
    assert values[1][1] is not None
    assert values[0][1] > 0.5 > values[1][1]
    assert values[0][0] == pytest.approx(values[1][0], abs=1e-5)


def test_what_is_loaded_gives_what_was_trained(base: Path, data: Path, tmp_path: Path) -> None:
    """Merged weights in the packed engine against PEFT's own forward pass over the saved adapter."""
    import peft
    import transformers

    made = train(settings(base, kind="prm", steps=6), data, tmp_path / "prm", progress=False)
    model = load_process_model(made.name, device="cpu", dtype="fp32")
    assert isinstance(model, FamilyProcessModel)
    assert model.context == 1024, "the base's, which is less than the family's"
    text = "Step 1: 5 ok\nStep 2: 5 no"
    solution = Solution(question="Q?", text=text, steps=split_steps(text))
    raw = [step.raw for step in model.score([solution])[0].scores]
    network = transformers.AutoModelForCausalLM.from_pretrained(base)
    network = peft.PeftModel.from_pretrained(network, str(tmp_path / "prm")).eval()
    words = TextTokenizer(tokenizer())
    declared = json.loads((tmp_path / "prm" / "reward_model.json").read_text())
    reading = math_shepherd.FAMILY.adapted(declared, words).write(words, "Q?", ["Step 1: 5 ok", "Step 2: 5 no"])
    with torch.no_grad():
        logits = network(torch.tensor([reading.ids])).logits[0, list(reading.reads)]
    expected = (logits[:, declared["good"]] - logits[:, declared["bad"]]).tolist()
    assert raw == pytest.approx(expected, abs=1e-4)
    plain = tiny_base(tmp_path / "plain")
    with torch.no_grad():
        untouched = transformers.AutoModelForCausalLM.from_pretrained(plain)(torch.tensor([reading.ids])).logits
    assert abs(float(untouched[0, reading.reads[-1], declared["good"]] - logits[-1, declared["good"]])) > 1e-3


def test_an_outcome_model(base: Path, data: Path, tmp_path: Path) -> None:
    made = train(settings(base, kind="orm"), data, tmp_path / "orm", progress=False)
    assert made.curve[-1].held_out_auroc == 1.0
    model = load_outcome_model(made.name, device="cpu", dtype="fp32")
    texts = ("Step 1: 3 ok\nStep 2: 3 ok", "Step 1: 3 ok\nStep 2: 3 no")
    good, bad = model.score([Solution(question="Q9?", text=text) for text in texts])
    assert good.value is not None
    assert bad.value is not None
    assert good.value > 0.5 > bad.value


def test_a_policy_speaks_as_it_was_taught(base: Path, tmp_path: Path) -> None:
    rows = [
        {"id": str(at), "messages": [{"role": "user", "content": f"{at}?"}, {"role": "assistant", "content": "yes"}]}
        for at in range(12)
    ]
    file = write_rows(tmp_path / "talk.jsonl", rows)
    made = train(settings(base, kind="policy", steps=80, rank=16), str(file), tmp_path / "policy", progress=False)
    assert made.name == f"hf:{tmp_path / 'policy'}"
    assert made.curve[-1].held_out_loss is not None
    assert made.curve[-1].held_out_loss < 0.3

    async def ask() -> str:
        model = open_model(made.name, device="cpu", dtype="float32")
        try:
            key = CallKey(problem="p", role="solver")
            sampling = Sampling(temperature=0.0, max_tokens=8)
            request = Request(messages=messages(("user", "7?")), key=key, sampling=sampling)
            return (await model.generate(request)).completions[0].text
        finally:
            await model.aclose()

    assert asyncio.run(ask()) == "yes"
    onward = settings(Path(str(tmp_path / "policy")), kind="policy", steps=1)
    assert train(onward, str(file), tmp_path / "further", progress=False).curve[-1].loss is not None
    described = json.loads((tmp_path / "further" / "adapter_config.json").read_text())
    assert described["base_model_name_or_path"] == str(tmp_path / "policy")
    assert open_model(f"hf:{tmp_path / 'further'}").fingerprint != open_model(made.name).fingerprint


def test_an_interrupted_training_ends_as_one_left_alone(base: Path, data: Path, tmp_path: Path) -> None:
    config = settings(base, kind="prm", steps=12, evaluate_every=4, dropout=0.1)
    whole = train(config, data, tmp_path / "whole", progress=False)
    asked = iter([False] * 4 + [True])
    part = train(config, data, tmp_path / "parts", progress=False, stop=lambda: next(asked))
    assert part.interrupted
    assert part.curve[-1].step == 5
    again = train(config, data, tmp_path / "parts", progress=False)
    assert not again.interrupted
    weights = [load_file(tmp_path / name / "adapter_model.safetensors") for name in ("whole", "parts")]
    assert weights[0].keys() == weights[1].keys()
    assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])
    assert again.curve[-1].held_out_loss == whole.curve[-1].held_out_loss
    once_more = train(config, data, tmp_path / "parts", progress=False, stop=pytest.fail)
    assert once_more.recipe["adapter_sha256"] == again.recipe["adapter_sha256"] == whole.recipe["adapter_sha256"]


def test_another_training_in_the_same_folder_is_refused(base: Path, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "prm"
    train(settings(base, kind="prm", steps=1), data, out, progress=False)
    with pytest.raises(InputError, match="other settings"):
        train(settings(base, kind="prm", steps=2), data, out, progress=False)
    assert train(settings(base, kind="prm", steps=2), data, out, progress=False, force=True).curve[-1].step == 2
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    with pytest.raises(StoreError, match="holds files"):
        train(settings(base, kind="prm", steps=1), data, tmp_path / "full", progress=False)


@pytest.mark.parametrize("precision", ["bf16", "autocast"])
def test_what_is_trained_is_float32_whatever_the_rest_is(
    precision: Any, base: Path, data: Path, tmp_path: Path
) -> None:
    config = settings(base, kind="orm", precision=precision, steps=20)
    trainee = open_trainee(config)
    assert {one.dtype for one in trainee.trained().values()} == {torch.float32}
    frozen = {one.dtype for one in trainee.parameters() if not one.requires_grad}
    assert frozen == {torch.bfloat16 if precision == "bf16" else torch.float32}
    made = train(config, data, tmp_path / "orm", progress=False)
    assert made.curve[-1].loss is not None
    assert made.curve[0].loss is not None
    assert made.curve[-1].loss < made.curve[0].loss


def test_padding_changes_nothing(base: Path) -> None:
    trainee = open_trainee(settings(base, kind="prm")).eval()
    short = Example(problem="a", ids=(5, 6, 7), reads=(1, 2), targets=(1.0, 0.0))
    long = Example(problem="b", ids=(9, 8, 7, 6, 5, 4), reads=(5,), targets=(0.5,))
    device = torch.device("cpu")
    with torch.no_grad():
        together = trainee(padded([short, long], 0, device))[1]
        alone = torch.cat([trainee(padded([one], 0, device))[1] for one in (short, long)])
    assert together.tolist() == pytest.approx(alone.tolist(), abs=1e-5)


@pytest.mark.parametrize("head", ["math-shepherd", "trl-prm"])
def test_a_bundle_trains_as_its_examples_do(head: str, base: Path) -> None:
    trainee = open_trainee(settings(base, kind="prm", head=head, precision="fp32")).eval()
    for one in trainee.trained().values():
        torch.nn.init.normal_(one, std=0.1)
    question = tuple(range(5, 14))
    parts = [
        Example(problem="a", ids=(*question, 20, 21, 22), reads=(9, 11), targets=(1.0, 0.0)),
        Example(problem="a", ids=(*question, 20, 30), reads=(10,), targets=(0.3,)),
        Example(problem="a", ids=(*question, 40, 41, 42, 43), reads=(9, 12), targets=(0.0, 1.0)),
    ]
    other = Example(problem="b", ids=(7, 8, 9), reads=(2,), targets=(1.0,))
    [bundle, alone] = bundled([parts[0], other, *parts[1:]], 100)
    assert (bundle.trunk, bundle.starts, len(bundle.ids)) == (9, (12, 14), 18)
    assert bundle.reads == (9, 11, 13, 14, 17)
    assert bundle.targets == (1.0, 0.0, 0.3, 0.0, 1.0)
    assert alone == other

    def measured(examples: Sequence[Example]) -> tuple[list[float], dict[str, Any]]:
        lost, values = trainee(padded(examples, 0, torch.device("cpu")))
        trainee.zero_grad()
        lost.backward()
        return values.tolist(), {name: one.grad.clone() for name, one in trainee.trained().items()}

    values, gradients = measured([bundle, other])
    plain_values, plain_gradients = measured([*parts, other])
    assert values == pytest.approx(plain_values, abs=1e-4)
    for name, gradient in gradients.items():
        assert torch.allclose(gradient, plain_gradients[name], atol=1e-4), name


def test_bundles_keep_to_their_length_and_never_share_what_is_read() -> None:
    chain = Example(problem="a", ids=(1, 2, 3, 4), reads=(3,), targets=(1.0,))
    assert [len(one.starts) for one in bundled([chain] * 5, 6)] == [2, 1], "a bundle of three has 3 + 3 tokens"
    early = Example(problem="a", ids=(1, 2, 3, 4), reads=(0, 3), targets=(1.0, 1.0))
    assert bundled([chain, early], 100) == [chain, early]


def test_a_logit_of_nought_loses_ln_2_whatever_the_label(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainee = open_trainee(settings(base, kind="prm")).eval()
    monkeypatch.setattr(trainee, "values", lambda hidden: hidden.sum(-1) * 0)
    example = Example(problem="a", ids=(5, 6, 7), reads=(1, 2), targets=(1.0, 0.3))
    lost, values = trainee(padded([example], 0, torch.device("cpu")))
    assert values.tolist() == [0.0, 0.0]
    assert float(lost.detach()) == pytest.approx(2 * 0.693147, abs=1e-5)


@pytest.mark.parametrize(
    ("changed", "error", "says"),
    [
        ({"kind": "critic"}, UnknownNameError, "prm, orm, policy, refiner"),
        ({"kind": "prm", "head": "trl-prn"}, UnknownNameError, "did you mean 'trl-prm'"),
        ({"kind": "prm", "rank": 0}, InputError, "rank is at least 1"),
        ({"kind": "prm", "held_out": 1.0}, InputError, "held_out lies in"),
        ({"kind": "prm", "precision": "int8"}, InputError, "precision"),
    ],
)
def test_settings_that_are_refused(changed: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        TrainingConfig(**changed)


def test_data_that_is_refused(base: Path, tmp_path: Path) -> None:
    rows = [{"id": "a", "question": "Q?", "steps": ["one"], "step_labels": [None], "outcome": None}]
    file = write_rows(tmp_path / "none.jsonl", rows)
    with pytest.raises(InputError, match="nothing to train on"):
        train(settings(base, kind="prm"), file, tmp_path / "a", progress=False)
    with pytest.raises(InputError, match="neither `messages` nor a worked"):
        train(settings(base, kind="policy"), "gen:sums:3", tmp_path / "b", progress=False)
    with pytest.raises(InputError, match="it is no folder here"):
        train(settings(Path("./nowhere"), kind="prm"), file, tmp_path / "c", progress=False)


def test_a_damaged_adapter_says_so(base: Path, data: Path, tmp_path: Path) -> None:
    made = train(settings(base, kind="prm", steps=1), data, tmp_path / "prm", progress=False)
    (tmp_path / "prm" / "adapter_model.safetensors").write_bytes(b"nothing")
    with pytest.raises(CheckpointError, match="cannot be read"):
        load_process_model(made.name, device="cpu")
    with pytest.raises(InputError, match="cannot be read"):
        open_model(f"hf:{tmp_path / 'prm'}")


def test_the_embedded_policy_and_the_model_below_it_are_bases() -> None:
    policy = adapter_folder("policy")
    if not is_adapter(policy):
        pytest.skip("this checkout has no trained policy")
    where, adapters, name = find_base("embedded")
    assert (adapters, name) == ([policy], "embedded")
    assert find_base("embedded:base") == (where, [], "embedded:base")
    assert base_of(Path(), "embedded") == policy
    assert str(base_of(policy, Adapter(policy).base)) == where, "or it would stand on itself"


def test_the_package_has_no_reward_adapters_yet_or_loads_them() -> None:
    if (adapter_folder("prm") / "adapter_config.json").exists():
        assert load_process_model("embedded").name == "embedded"
    else:
        with pytest.raises(CheckpointError, match="train_embedded"):
            load_process_model("embedded")


# Conversations


def test_problems_become_the_solvers_conversation() -> None:
    prompts = load_prompts("trained")
    problem = load_problems("gen:stories:1:4:train")[0]
    ((name, talk),) = read_conversations("gen:stories:1:4:train", prompts)
    assert name == problem.id
    assert talk[:-1] == prompts.messages("solver", "number", question=problem.question)
    assert talk[-1]["content"].startswith("Step 1: ")
    assert talk[-1]["content"].endswith(f"The final answer is {problem.answer}.")


def test_feedback_names_the_first_wrong_step_and_no_right_value() -> None:
    steps = split_steps(
        "Step 1: 3 + 4 = 7.\nStep 2: 7 * 2 = 15.\nStep 3: 15 - 1 = 14.\nStep 4: The final answer is 14."
    )
    said = feedback_from_labels(steps, (1.0, 0.0, 0.0, 0.0))
    assert said == (
        "Step 2 is wrong: 7 * 2 is not 15; work it out again. Steps 3 to 4 change with it. Step 1 is right."
    )
    assert "14" not in said
    misread = feedback_from_labels(steps, (0.0, None, None, None))
    assert misread.startswith("Step 1 is wrong: it does not do what the question says")
    assert feedback_from_labels(steps, (1.0, 1.0, None, 1.0)) == "All steps are right."


def test_reviews_and_refinements_are_written_in_the_toolkits_prompts(tmp_path: Path) -> None:
    rows = [
        {"id": f"p{at}", "question": "3 + 4, doubled?", "answer": "14", "kind": "number", "outcome": False}
        | {"steps": ["Step 1: 3 + 4 = 7.", "Step 2: 7 * 2 = 15."], "step_labels": [1, 0]}
        for at in range(40)
    ]
    read = read_labels(write_rows(tmp_path / "labels.jsonl", rows))
    worked = {f"p{at}": "Step 1: 3 + 4 = 7.\nStep 2: 7 * 2 = 14." for at in range(39)}
    talks = list(refining_conversations(read, worked, load_prompts("trained"), seed=1))
    assert len(talks) == 78, "the last has no worked solution"
    review, refine = talks[0][1], talks[1][1]
    assert review[0]["content"].startswith("Review the solution.")
    assert refine[-1]["content"] == worked["p0"]
    assert "Step 2 is wrong: 7 * 2 is not 15" in refine[-2]["content"]
    scored = [talk for _, talk in talks if "(score " in talk[-2]["content"]]
    assert 40 < len(scored) < 78, "one in four is shown without scores"


def test_the_command(base: Path, data: Path, tmp_path: Path) -> None:
    call = ["train", "prm", str(data), "--base", str(base), "--out", str(tmp_path / "prm"), "--steps", "2"]
    result = CliRunner().invoke(app, [*call, "--rank", "2", "--device", "cpu"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "2 steps in" in result.output
    assert f"loads as math-shepherd:{tmp_path / 'prm'}" in result.output
    assert training.RECIPE == "training.json"
    recipe = json.loads((tmp_path / "prm" / "training.json").read_text())
    assert recipe["finished"]
    assert recipe["rank"] == 2
    assert recipe["examples"] + recipe["held_out_examples"] == 24
