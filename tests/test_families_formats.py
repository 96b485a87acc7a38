"""Formats against ids that are known from outside: the vectors and token tables of public model cards and issues."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import tiny_models as tiny
from reward_models.errors import TagInTextError
from reward_models.families import (
    eurus_prm,
    internlm2_reward,
    math_psa,
    math_shepherd,
    qwen_math_prm,
    qwen_math_rm,
    rlhflow,
    sequence_classifier,
    skywork_o1,
    trl_prm,
    versa_prm,
)
from reward_models.families.tokens import TextTokenizer


def made(factory: Callable[[Path], None]) -> Callable[..., TextTokenizer]:
    @pytest.fixture(scope="module")
    def fixture() -> TextTokenizer:
        return tiny.words(tiny.tokenizer_folder(factory))

    return fixture


mistral = made(tiny.mistral_tokenizer)
qwen = made(tiny.qwen_tokenizer)
llama3 = made(tiny.llama3_tokenizer)
internlm2 = made(tiny.internlm2_tokenizer)


def test_math_shepherd_ids(mistral: TextTokenizer) -> None:
    assert mistral.encode("step one ки\nstep two ки") == [3707, 624, 12902, 13, 7691, 989, 12902]
    reading = math_shepherd.write(mistral, "Q", ["step one", "step two"])
    assert reading.ids[0] == 1 and [reading.ids[at] for at in reading.reads] == [12902, 12902]
    assert reading.reads[-1] == len(reading.ids) - 1
    math_shepherd.FAMILY.check_tokenizer(mistral)


def test_math_shepherd_tag_glued_to_a_word_is_no_tag_and_a_tag_in_the_question_is_refused(
    mistral: TextTokenizer,
) -> None:
    assert math_shepherd.write(mistral, "Q", ["glueки"]).ids.count(12902) == 1
    with pytest.raises(TagInTextError, match="12902"):
        math_shepherd.write(mistral, "What does ки mean?", ["one"])


def test_qwen_math_prm_is_the_published_template(qwen: TextTokenizer) -> None:
    reading = qwen_math_prm.write(qwen, "What is 2+2?", ["First.", "Then $4$."])
    text = qwen.backend.decode(reading.ids)
    assert text == (
        "<|im_start|>system\nPlease reason step by step, and put your final answer within \\boxed{}.<|im_end|>\n"
        "<|im_start|>user\nWhat is 2+2?<|im_end|>\n"
        "<|im_start|>assistant\nFirst.<extra_0>Then $4$.<extra_0><|im_end|>\n"
    )
    whole = qwen.backend(text, add_special_tokens=False)["input_ids"]
    assert list(reading.ids) == whole and [whole[at] for at in reading.reads] == [151651, 151651]


def test_special_tokens_in_the_text_are_letters(qwen: TextTokenizer) -> None:
    reading = qwen_math_prm.write(qwen, "Is <extra_0> a tag?<|im_end|>", ["One <extra_0>", "Two"])
    assert len(reading.reads) == 2 and reading.ids.count(151645) == 3


def test_qwen_math_rm_reads_the_line_feed_after_the_last_turn(qwen: TextTokenizer) -> None:
    reading = qwen_math_rm.write(qwen, "Q", ["A"])
    assert reading.ids[-2:] == (151645, 198) and reading.reads == (len(reading.ids) - 1,)


def test_internlm2_ids_are_those_of_the_model_card(internlm2: TextTokenizer) -> None:
    """The card's vector, its words replaced by the stand-in's letters."""
    reading = internlm2_reward.write(internlm2, "Hi", ["My"])
    spell = internlm2.encode
    user, assistant = [92543, *spell("user"), 364, *spell("Hi")], [92543, *spell("assistant"), 364, *spell("My")]
    assert list(reading.ids) == [1, *user, 92542, 364, *assistant, 92542, 364, 92527]
    assert reading.reads == (len(reading.ids) - 1,)


def test_rlhflow_reads_before_each_plus(llama3: TextTokenizer) -> None:
    reading = rlhflow.write(llama3, "Q", ["one", "two"])
    assert [reading.ids[at + 1] for at in (reading.reads[0],)] == [10]
    assert all(reading.ids[at] == 271 for at in reading.reads), "the blank line after the assistant's header"
    text = llama3.backend.decode(reading.ids)
    assert text.startswith(
        "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\n"
        "Today Date: 26 Jul 2024\n\n<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nQ one<|eot_id|>"
    )
    assert text.endswith(
        "<|start_header_id|>user<|end_header_id|>\n\ntwo<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"
    )
    once = rlhflow.write(llama3, "Q", ["one"])
    assert reading.ids[: len(once.ids)] == once.ids, "one forward pass sees what the published loop shows"


def test_skywork_appends_a_line_feed_token_to_each_step(qwen: TextTokenizer) -> None:
    reading = skywork_o1.write(qwen, "Q", ["a\nb", "c"])
    assert reading.ids[0] == 151644 and [reading.ids[at] for at in reading.reads] == [198, 198]
    assert reading.ids.count(198) == 4, "the question's, the one within a step, and the two that are read"


@pytest.mark.parametrize(("words", "tag"), [("llama3", 23535), ("qwen", 22701)])
def test_versa_tags(words: str, tag: int, request: pytest.FixtureRequest) -> None:
    tokenizer = request.getfixturevalue(words)
    reading = versa_prm.write(tokenizer, "Q", ["one.", "two"])
    assert [reading.ids[at] for at in reading.reads] == [tag, tag]
    assert (reading.ids[0] == 128000) == (words == "llama3")
    with pytest.raises(TagInTextError):
        versa_prm.write(tokenizer, "Q", ["one \n\n\n\nand more"])


def test_math_psa_and_erprm_ids(qwen: TextTokenizer, llama3: TextTokenizer) -> None:
    from reward_models.families import erprm

    reading = math_psa.write(qwen, "Q", ["one.", "two"])
    assert [reading.ids[at] for at in reading.reads] == [76325, 76325]
    reading = erprm.write(llama3, "Q", ["one.", "two"])
    assert [reading.ids[at] for at in reading.reads] == [116624, 116624]
    for family, tokenizer in ((math_psa.FAMILY, qwen), (erprm.FAMILY, llama3), (rlhflow.PRM, llama3)):
        family.check_tokenizer(tokenizer)


def test_eurus_groups_every_answer_token_by_step(qwen: TextTokenizer) -> None:
    reading = eurus_prm.write(qwen, "Q", ["Step 1: a.", "Step 2: b."])
    texts, at = [], reading.reads[0] + 1
    for count in reading.counts:
        texts.append(qwen.backend.decode(reading.ids[at : at + count]))
        at += count
    assert texts == ["Step 1: a.\n\n", "Step 2: b.<|im_end|>"] and at == len(reading.ids)
    whole = qwen.backend("Step 1: a.\n\nStep 2: b.<|im_end|>", add_special_tokens=False)["input_ids"]
    assert list(reading.ids[reading.reads[0] + 1 :]) == whole


def test_trl_tokenises_every_piece_apart(qwen: TextTokenizer) -> None:
    reading = trl_prm.write(qwen, "Q", ["a.", "b."])
    assert [reading.ids[at] for at in reading.reads] == [198, 198]
    assert reading.ids == (*qwen.encode("Q"), *qwen.encode("a."), 198, *qwen.encode("b."), 198)


def test_a_template_that_writes_the_first_token_is_not_doubled(llama3: TextTokenizer) -> None:
    reading = sequence_classifier.write(llama3, "Q", ["A"])
    assert reading.ids.count(128000) == 1 and reading.ids[reading.reads[0]] == 128009
    with pytest.raises(TagInTextError, match="eot_id"):
        sequence_classifier.write(llama3, "Q<|eot_id|>", ["A"])
