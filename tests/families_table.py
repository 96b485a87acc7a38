"""Which test proves what of which reward model: the table in ``tests/FAMILIES.md``, which this module writes.

    python tests/families_table.py

A test (``test_families_table.py``) holds the file to this module, this module to the registry, and every name of a test
to the tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("FAMILIES.md")
FORMATS = "test_families_formats.py"
PARITY = "test_families_parity.py::test_a_family_equals_the_plain_computation"
ENGINES = "test_remote_engines.py"
REAL = "test_integration_scoring.py"
CONFIDENCE = "test_rm_confidence.py"
NO_SERVER = "no server has a class for its head, and the client says so"
AT_SERVE = "asked as Math-Shepherd is; not tested against a server of its own"
RULE = "a formula, checked by hand-computed values"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One family. Each proof is a test's name (``FILE::TEST``, ``FILE::TEST[CASE]`` for a row of its table), several of
    them, or, where there is none, a sentence that says what is missing."""

    family: str
    names: tuple[str, ...]
    format: tuple[str, ...]
    parity: tuple[str, ...]
    remote: tuple[str, ...]


def parity(*cases: str) -> tuple[str, ...]:
    return tuple(f"{PARITY}[{case}]" for case in cases)


ROWS = (
    Row(
        family="Math-Shepherd",
        names=("math-shepherd",),
        format=(f"{FORMATS}::test_math_shepherd_ids",),
        parity=parity("math-shepherd"),
        remote=(
            f"{ENGINES}::test_vllm_rows_at_the_steps",
            f"{ENGINES}::test_vllm_documented_math_shepherd_configuration_is_refused",
            f"{ENGINES}::test_sglang_scores_prefixes",
            f"{REAL}::test_math_shepherd_as_a_classifier_of_two_tokens",
        ),
    ),
    Row(
        family="InternLM2-reward",
        names=("internlm2-reward", "internlm2-1.8b-reward", "internlm2-7b-reward", "internlm2-20b-reward"),
        format=(f"{FORMATS}::test_internlm2_ids_are_those_of_the_model_card",),
        parity=parity("internlm2-reward"),
        remote=(
            f"{ENGINES}::test_vllm_classifiers_are_asked_at_classify",
            f"{ENGINES}::test_sglang_classifies_at_the_last_token",
            f"{REAL}::test_converted_internlm2_reward",
        ),
    ),
    Row(
        family="Qwen2.5-Math-PRM",
        names=("qwen2.5-math-prm", "qwen2.5-math-prm-7b", "qwen2.5-math-prm-72b", "qwen2.5-math-7b-prm800k"),
        format=(f"{FORMATS}::test_qwen_math_prm_is_the_published_template",),
        parity=parity("qwen2.5-math-prm"),
        remote=(f"{ENGINES}::test_vllm_two_labels_are_good_minus_bad", f"{REAL}::test_qwen_math_prm"),
    ),
    Row(
        family="Qwen2.5-Math-RM",
        names=("qwen2.5-math-rm", "qwen2.5-math-rm-72b"),
        format=(f"{FORMATS}::test_qwen_math_rm_reads_the_line_feed_after_the_last_turn",),
        parity=parity("qwen2.5-math-rm"),
        remote=(
            f"{ENGINES}::test_vllm_outcome_from_all_pooling_takes_the_last_row",
            f"{ENGINES}::test_sglang_classifies_at_the_last_token",
        ),
    ),
    Row(
        family="RLHFlow Llama 3.1",
        names=(
            "rlhflow-prm",
            "rlhflow-prm-mistral",
            "rlhflow-prm-deepseek",
            "rlhflow-orm",
            "rlhflow-orm-mistral",
            "rlhflow-orm-deepseek",
        ),
        format=(f"{FORMATS}::test_rlhflow_reads_before_each_plus",),
        parity=parity("rlhflow-prm", "rlhflow-orm"),
        remote=(
            f"{ENGINES}::test_vllm_positions_without_a_tag_need_every_row",
            f"{ENGINES}::test_vllm_rows_at_other_places_are_not_taken_for_the_steps",
        ),
    ),
    Row(
        family="Skywork-o1-Open-PRM",
        names=("skywork-o1-prm", "skywork-o1-prm-1.5b", "skywork-o1-prm-7b"),
        format=(f"{FORMATS}::test_skywork_appends_a_line_feed_token_to_each_step",),
        parity=parity("skywork-o1-prm"),
        remote=(NO_SERVER, f"{ENGINES}::test_heads_that_no_server_has_a_class_for"),
    ),
    Row(
        family="EurusPRM",
        names=("eurus-prm", "eurus-prm-stage1", "eurus-prm-stage2"),
        format=(f"{FORMATS}::test_eurus_groups_every_answer_token_by_step",),
        parity=("test_families_parity.py::test_eurus_is_the_log_ratio_of_two_models",),
        remote=(
            f"{ENGINES}::test_token_log_probabilities",
            f"{ENGINES}::test_implicit_rewards_from_two_servers",
            f"{REAL}::test_a_generation_server_scores_prefixes_and_tokens",
        ),
    ),
    Row(
        family="VersaPRM and its format",
        names=("versa-prm", "llama-prm800k", "qwen-prm800k"),
        format=(f"{FORMATS}::test_versa_tags",),
        parity=parity("versa-prm on Llama", "versa-prm on Qwen, tied"),
        remote=(AT_SERVE,),
    ),
    Row(
        family="Math-PSA",
        names=("math-psa",),
        format=(f"{FORMATS}::test_math_psa_and_erprm_ids",),
        parity=parity("math-psa"),
        remote=(AT_SERVE,),
    ),
    Row(
        family="erPRM",
        names=("erprm",),
        format=(f"{FORMATS}::test_math_psa_and_erprm_ids",),
        parity=parity("erprm"),
        remote=(AT_SERVE,),
    ),
    Row(
        family="ReasonFlux-PRM",
        names=("reasonflux-prm-7b", "reasonflux-prm-1.5b"),
        format=("the 7B writes as Qwen2.5-Math-PRM does; the 1.5B has no vector of its own",),
        parity=parity("reasonflux-prm-7b", "reasonflux-prm-1.5b"),
        remote=(
            "the 7B is asked as Qwen2.5-Math-PRM is; for the 1.5B " + NO_SERVER,
            f"{ENGINES}::test_heads_that_no_server_has_a_class_for",
        ),
    ),
    Row(
        family="Sequence classifiers, Skywork-Reward and V2",
        names=("sequence-classification", "skywork-reward-v2"),
        format=(f"{FORMATS}::test_a_template_that_writes_the_first_token_is_not_doubled",),
        parity=parity("sequence-classification"),
        remote=("asked at /classify as InternLM2-reward is; not tested against a server of its own",),
    ),
    Row(
        family="TRL token classifiers",
        names=("trl-prm",),
        format=(f"{FORMATS}::test_trl_tokenises_every_piece_apart",),
        parity=parity("trl-prm"),
        remote=("asked as Qwen2.5-Math-PRM is; not tested against a server of its own",),
    ),
    Row(
        family="Cross-encoders",
        names=("cross-encoder",),
        format=("the server writes the pair",),
        parity=("scored by a server only",),
        remote=(f"{ENGINES}::test_vllm_pairs_go_to_score",),
    ),
    Row(
        family="GenPRM",
        names=("genprm",),
        format=("test_generative_families.py::test_genprm_asks_as_published_and_scores_yes_against_no",),
        parity=("test_generative_families.py::test_decisions",),
        remote=(f"{REAL}::test_generative_families_by_name",),
    ),
    Row(
        family="ThinkPRM",
        names=("thinkprm",),
        format=("test_generative_families.py::test_thinkprm_scores_every_prefix",),
        parity=("test_generative_families.py::test_decisions",),
        remote=(f"{REAL}::test_generative_families_by_name",),
    ),
    Row(
        family="Judges",
        names=("judge",),
        format=("test_rm_judges.py::test_the_outcome_judge_asks_with_the_question_first",),
        parity=("test_rm_judges.py::test_the_verdicts_probability_is_read_at_its_token",),
        remote=("asks any language model; has no server of its own",),
    ),
    Row(
        family="Confidence from log-probabilities",
        names=("likelihood", "self-certainty", "deepconf"),
        format=(RULE,),
        parity=(
            f"{CONFIDENCE}::test_likelihood_is_the_geometric_mean_of_token_probabilities",
            f"{CONFIDENCE}::test_self_certainty_by_hand",
            f"{CONFIDENCE}::test_deepconf_by_hand",
        ),
        remote=("test_remote_http.py::test_log_probabilities_are_sent_where_they_are_required",),
    ),
    Row(
        family="Arithmetic by rule",
        names=("arithmetic",),
        format=(RULE,),
        parity=("test_rm_arithmetic.py::test_agrees_with_exact_arithmetic",),
        remote=("test_remote_http.py::test_every_model_without_a_checkpoint_scores_there_as_here",),
    ),
    Row(
        family="The package's own small models",
        names=("embedded",),
        format=("Math-Shepherd's, and a sequence classifier's",),
        parity=("as those two; an adapter's merge is tested with training",),
        remote=("not tested: they are adapters, which no scoring server is asked to load",),
    ),
    Row(
        family="For ablations and tests",
        names=("constant", "random", "scripted"),
        format=(RULE,),
        parity=(
            "test_rm_scripted.py::test_constants",
            "test_rm_scripted.py::test_random_scores_depend_on_content_and_seed_alone",
        ),
        remote=("test_remote_http.py::test_every_model_without_a_checkpoint_scores_there_as_here",),
    ),
)

HEAD = """# Reward models and the tests that prove them

Written by `python tests/families_table.py`. *Format*: the token ids against what is known from outside (model cards,
published code, real vocabularies). *Parity*: a tiny checkpoint of the true architecture against the plain computation
in fp32, to 1e-5, with shared prefixes, duplicates and odd orders. *Remote*: a scoring server, real where the file is
`test_integration_scoring.py`, else one that answers as the real one does. Where there is no such test the cell says
what is missing. Every family is also given poisoned inputs (`test_families_poison.py`), and every model can be served
and asked over plain HTTP (`test_remote_http.py`).

| family | names | format | parity | remote |
|---|---|---|---|---|
"""


def table() -> str:
    """The file's text."""
    lines = [
        f"| {row.family} | {', '.join(f'`{name}`' for name in row.names)} | "
        + " | ".join(_cell(proofs) for proofs in (row.format, row.parity, row.remote))
        + " |"
        for row in ROWS
    ]
    return HEAD + "\n".join(lines) + "\n"


def is_test(proof: str) -> bool:
    """Whether it is the name of a test, and not a sentence."""
    return "::" in proof


def _cell(proofs: tuple[str, ...]) -> str:
    return "<br>".join(f"`{proof}`" if is_test(proof) else proof for proof in proofs)


if __name__ == "__main__":
    FILE.write_text(table(), encoding="utf-8")
