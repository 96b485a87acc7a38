"""What is read from responses: every kind, marker and reason, on texts small enough to read by eye."""

from __future__ import annotations

from typing import cast

import pytest

from magicore.answers import KINDS, extract
from magicore.answers.boxed import boxes
from magicore.answers.kinds import Kind
from magicore.answers.markers import sites
from magicore.answers.response import prepare, sentences

NUMBERS = [
    ("**Final Answer:** 1,250 dollars", "1250", "final-answer"),
    ("### Answer\n42", "42", "answer-colon"),
    ("#### 1,234", "1234", "hash"),
    ("<answer>The total is 12 apples</answer>", "12", "tag"),
    (r"$$\boxed{\$1{,}250}$$", "1250", "boxed"),
    (r"\boxed{x=5}", "5", "boxed"),
    (r"\boxed{3\times 10^{8}\ \text{m/s}}", "300000000", "boxed"),
    (r"The final answer is $\frac{3}{4}$.", "0.75", "final-answer"),
    ("The answer is -7.", "-7", "answer-is"),
    ("The answer is minus seven.", "-7", "answer-is"),
    ("The answer is 12%", "12%", "answer-is"),
    ("Answer: ¼", "0.25", "answer-colon"),
    ("The answer is 1/3", "1/3", "answer-is"),
    ("Answer: $5 + $3 = $8", "8", "answer-colon"),
    ("Answer: 17 (since 20 - 3 = 17)", "17", "answer-colon"),
    ("Answer: Ann makes 750 calls to sell 15 cars.", "750", "answer-colon"),
    ("Answer:\nIn 3 years, Bob will be 13.", "13", "answer-colon"),
    ("Answer:\n18x + 70 = 160\nx = 5\n\nSo, there are 5 rats.", "5", "answer-colon"),
    ("Answer: 10:30 AM", "10.5", "answer-colon"),
    ("Answer: 3 hours 30 minutes", "3.5", "answer-colon"),
    ("Answer: 20\n\nConfidence: 99%", "20", "answer-colon"),
    ("**ANSWER: 10**\n\nWait, actually **ANSWER: 20**", "20", "answer-colon"),
    ("I think the answer is 5. Wait, no, it's 6.", "6", "answer-is"),
    ("I revise my answer to 9.", "9", "answer-is"),
    ("The answer is 8. Actually, the correct number of cats is 9.", "9", "answer-is"),
    ("She pays 15 * 12 = $<<15*12=180>>180. So Ann spent $180 for the 12 chairs.", "180", "last-number"),
    ("It costs $80,000 + $50,000 = $130,000. The profit is $70,000.", "70000", "last-number"),
    ("The probability is 1/6 ≈ 0.167.", "1/6", "last-number"),
    ("The answer isn't 5; it's 6.", "6", "last-number"),
    ("Therefore, John has no apples left.", "0", "last-number"),
    ("The total is -50 dollars, so x - 3 = -53", "-53", "last-number"),
    ("forty-two", "42", "whole-text"),
]

ABROAD = [
    ("Die Antwort ist 3,5.", "3.5"),
    ("La respuesta es 1.234,5 euros.", "1234.5"),
    ("La réponse finale est : 12 345", "12345"),
    ("Ответ: 42", "42"),
    ("答案：４２", "42"),
    ("答えは42です。", "42"),
    ("정답은 42입니다.", "42"),
    ("الإجابة هي ٤٢", "42"),
    ("उत्तर है ४२", "42"),
]

CHOICES = [
    ("The correct option is B.", "B"),
    ("(b)", "B"),
    ("[[C]]", "C"),
    (r"\boxed{\textbf{(C) }12}", "C"),
    ("Answer: B. Paris", "B"),
    ("Answer: (X) (A) 84", "A"),
    ("The best answer is option (C) because A and B are wrong.", "C"),
    ("The observation is (D) small. In contrast, (A), (B), and (C) are opinions.", "D"),
    ("A is wrong. B is wrong. C is right.", "C"),
    ('The correct answer is (K) red, not "(O) black" as stated before.', "K"),
    ("It is not in the table. The answer is not among the choices. (E) None of these.", "E"),
    ("故选C。", "C"),
    ("因此，答案为（B）。", "B"),
    ("Answer: ACD", "ACD"),
    ("Answer: A, C", "AC"),
    ("I would pick B — a safe choice.", "B"),
]

YES_NO = [
    ("**No.**", "no"),
    ("The answer is: **Yes**", "yes"),
    ("It seems so at first. On reflection the answer is no.", "no"),
    ("In summary, NO, she would not.", "no"),
    ("The truth matters. Therefore, she was not monogamous.", "no"),
    ("Final answer: Not true", "no"),
    ("Respuesta: Sí", "yes"),
    ("答案：不是", "no"),
    ("Yes. There is no evidence against it.", "yes"),
    ("So the answer depends on the reading, but the most accurate response would be: Yes.", "yes"),
]

OTHERS: list[tuple[Kind, str, str]] = [
    ("math", r"conclude \boxed{\left( 3, \frac{1}{2} \right)}.", r"\left( 3, \frac{1}{2} \right)"),
    ("math", r"\boxed{3}, \boxed{5}, \boxed{7}", "3, 5, 7"),
    ("math", "The solutions are $x=1$ and $x=2$.", "x=1, x=2"),
    ("math", "The answer is $1/3.$", "1/3"),
    ("math", r"The answer is \boxed{\{1, 2\}}.", r"\{1, 2\}"),
    ("math", "Final Answer: The largest $n$ is 34.", "34"),
    ("math", r"\boxed{\text{no solution}}", r"\text{no solution}"),
    ("date", "It opened in 1903.\nAnswer: May 5th, 2020", "May 5th, 2020"),
    ("date", "It was 5 May 2020, so a week later is 12 May 2020.", "12 May 2020"),
    ("text", "**Answer:** Marie Curie", "Marie Curie"),
    ("text", r"\boxed{\text{Paris}}", "Paris"),
    ("text", "New York", "New York"),
]

NOTHING: list[tuple[Kind, str, str]] = [
    ("number", "no digits here", "no answer stated"),
    ("number", "**ANSWER: **", "no answer stated"),
    ("number", "The answer is between 3 and 5.", "a range"),
    ("number", "It takes 3-5 days.", "a range"),
    ("number", r"The answer is \boxed{2 \text{ or } 4}.", "conflicting answers"),
    ("number", r"\boxed{4, 6}", "conflicting answers"),
    ("number", r"So 7 - 3 = 4. Hence \boxed{x-32}.", "not a number"),
    ("number", "It starts with 44 pounds.\nAnswer: It weighs 22x pounds.", "not a number"),
    ("number", r"She has 3 dollars, for \boxed{\infty} weeks.", "not a number"),
    ("number", r"He eats 36. The correct response would be \boxed{\text{unknown}}.", "refusal"),
    ("number", "It is 7. Therefore, the answer cannot be determined.", "refusal"),
    ("number", "There are 4 * 2 = 8. So there must be an error in the problem.", "refusal"),
    ("number", "t = 0.5\n\nAnswer: [The numerical answer for the distance]", "placeholder"),
    ("number", r"It is 3. The answer is \boxed{42", "truncated"),
    ("choice", "The last penguin is Gwen.\n\n(X) Gwen", "no such option"),
    ("choice", "The answer is not listed, so none of the options are correct (N/A).", "none of the options"),
    ("choice", "Answer: (C) and (D).", "conflicting answers"),
    ("choice", "The answer is either A or B.", "conflicting answers"),
    ("choice", "I cannot determine the answer.", "refusal"),
    ("choice", "A perfect answer cannot be found.", "no answer stated"),
    ("choice", "Answer: Cannot be determined.", "refusal"),
    ("yesno", "Hence, I cannot provide a definitive 'Yes' or 'No' answer.", "refusal"),
    ("yesno", "The answer is Yes (for some) or No (for others).", "conflicting answers"),
    ("yesno", "Nobody knows.", "no answer stated"),
    ("date", "The passage gives no date.", "no answer stated"),
    ("text", "I cannot solve it.", "refusal"),
    ("math", "I don't know.", "refusal"),
]


@pytest.mark.parametrize(("text", "value", "marker"), NUMBERS)
def test_numbers_and_what_they_are_read_from(text: str, value: str, marker: str) -> None:
    found = extract(text, "number")
    assert (found.value, found.marker) == (value, marker)


@pytest.mark.parametrize(("text", "value"), ABROAD)
def test_numbers_in_other_languages(text: str, value: str) -> None:
    found = extract(text, "number")
    assert (found.value, found.certainty) == (value, "stated")


@pytest.mark.parametrize(("text", "value"), CHOICES)
def test_choices(text: str, value: str) -> None:
    assert extract(text, "choice").value == value


@pytest.mark.parametrize(("text", "value"), YES_NO)
def test_yes_and_no(text: str, value: str) -> None:
    assert extract(text, "yesno").value == value


@pytest.mark.parametrize(("kind", "text", "value"), OTHERS)
def test_expressions_dates_and_texts(kind: Kind, text: str, value: str) -> None:
    assert extract(text, kind).value == value


@pytest.mark.parametrize(("kind", "text", "reason"), NOTHING)
def test_no_answer_has_a_reason(kind: Kind, text: str, reason: str) -> None:
    found = extract(text, kind)
    assert (found.value, found.text, found.span, found.certainty, found.reason) == (None, None, None, None, reason)


def test_the_span_points_at_the_answer_as_written() -> None:
    text = "Die Antwort ist −１２,5 km."
    found = extract(text, "number")
    assert found.value == "-12.5" and found.span is not None
    assert text[slice(*found.span)] == found.text == "−１２,5"


def test_certainty_tells_boxes_from_words_from_endings() -> None:
    certainties = [extract(text, "number").certainty for text in (r"\boxed{4}", "Answer: 4", "She has 4 apples.")]
    assert certainties == ["boxed", "stated", "fallback"]


@pytest.mark.parametrize("stop", ["length", "filter", "error"])
def test_a_chain_cut_off_gives_only_what_it_stated_whole(stop: str) -> None:
    assert extract("First 3 + 4 = 7. Therefore 7 * 2 = 14", "number", stop=stop).reason == "truncated"
    assert extract("The answer is 4", "number", stop=stop).reason == "truncated"
    assert extract("The answer is 4. Let me check tha", "number", stop=stop).value == "4"
    assert extract(r"So \boxed{4}", "number", stop=stop).value == "4"
    assert extract(r"<think>\boxed{4} and then I wonder whether", "number", stop=stop).value is None


def test_thinking_and_other_speakers_are_not_read() -> None:
    assert extract(r"<think>I get \boxed{5}</think>The answer is \boxed{4}.", "number").value == "4"
    assert extract("This is 7.</think> The answer is 9.", "number").value == "9"
    assert extract(r"\boxed{8}<|im_end|><|im_start|>user Next? \boxed{2}", "number").value == "8"
    assert extract("Answer: 8\n\nQuestion: What is 1 + 1?\nAnswer: 2", "number").value == "8"


def test_the_format_that_was_asked_for_is_read_first() -> None:
    text = "#### 7\nThe answer is 8. \\boxed{9}\nAnswer: 10"
    asked = {None: "10", "hash": "7", "boxed": "9", "answer": "10", "tag": "10", "letter": "10"}
    assert {name: extract(text, "number", asked=name).value for name in asked} == asked


def test_options_limit_letters_and_give_their_texts() -> None:
    options = {"A": "Paris", "B": "London", "C": "Rome"}
    assert extract("The answer is (D).", "choice", options=options).reason == "no such option"
    assert extract("The answer is Rome.", "choice", options=options).value == "C"
    assert extract("It must be London, of course.", "choice", options=list(options.values())).value == "B"
    assert extract("Rome or Paris, who knows", "choice", options=options).reason == "conflicting answers"
    assert extract("Answer: 12.0", "choice", options=["10", "12"]).value == "B"
    assert extract("(X) it is", "choice", options={"x": "yes", "y": "no"}).value == "X"


def test_a_heading_after_the_answer_ends_it() -> None:
    text = "Answer: (B) 2\n\nJustification: there are 3 (C) more."
    assert extract(text, "choice").value == "B"


def test_unknown_kinds_and_formats_are_errors() -> None:
    with pytest.raises(ValueError, match="use one of number, math, choice"):
        extract("4", cast(Kind, "numbers"))
    with pytest.raises(ValueError, match="use one of boxed, tag, hash"):
        extract("4", "number", asked="box")


def test_empty_text_has_no_answer_of_any_kind() -> None:
    assert {extract(text, kind).reason for text in ("", "  \n ") for kind in KINDS} == {"no answer stated"}


def test_boxes_nest_and_may_stay_open() -> None:
    text = r"\boxed{\boxed{{7}}} \boxed as asked \boxed 2 \boxed{\{1\}} \boxed{open"
    inner = [None if box.inner is None else text[slice(*box.inner)] for box in boxes(text)]
    assert inner == ["7", "2", r"\{1\}", None]


def test_judgements_on_other_answers_are_no_statements() -> None:
    text = "The agent's answer is 5. The previous answer is 6. The answer is correct. The answer is 7."
    assert [text[site.start :] for site in sites(text)] == ["answer is 7."]


def test_preparing_moves_nothing() -> None:
    raw = "<think>a</think>１２ <<3*4=12>> is it<|im_end|>x"
    prepared = prepare(raw, cut=False)
    assert len(prepared.text) == len(raw) and prepared.text.split() == ["12", "is", "it"]


def test_sentences_know_abbreviations_and_decimals() -> None:
    text = "It costs Rs. 620 or 3.5 approx. 4 in all. Done (yes.) Next\nline"
    found = [sentence.text for sentence in sentences(text, 0, len(text))]
    assert found == ["It costs Rs. 620 or 3.5 approx. 4 in all.", "Done (yes.)", "Next", "line"]
