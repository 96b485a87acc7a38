"""Numbers as written, to exact rationals and back to canonical text."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magicore.answers.number import MAX_DIGITS, parse_number, plain_decimal
from magicore.answers.number_format import canonical_number
from magicore.answers.number_tokens import tokens
from magicore.answers.numerals import chinese_value, words_value
from magicore.answers.units import canonical_unit

VALUES = [
    ("1,234", "1234"),
    ("1 234", "1234"),
    ("1'234", "1234"),
    ("12,34,567", "1234567"),
    ("1.234,5", "1234.5"),
    ("1000,99", "1000.99"),
    ("0,111", "0.111"),
    ("7,995,709", "7995709"),
    ("1.234", "1.234"),
    ("-5", "-5"),
    ("−5", "-5"),
    ("–5", "-5"),
    ("+0012.3400", "12.34"),
    (".4", "0.4"),
    ("-0.0", "0"),
    (r"-\dfrac83", "-8/3"),
    (r"7 \frac{3}{4}", "7.75"),
    ("-4 4/9", "-40/9"),
    ("1 000 4/9", "9004/9"),
    ("2½", "2.5"),
    (r"36.\overline{6}", "110/3"),
    ("0.(3)", "1/3"),
    (r"1.5 \times 10^3", "1500"),
    ("5 × 10⁴", "50000"),
    ("1e-3", "0.001"),
    ("$-35824306", "-35824306"),
    (r"\$16,\!386.20", "16386.2"),
    ("1,000.99€", "1000.99"),
    ("2 million", "2000000"),
    ("$1.5M", "1500000"),
    ("forty-two", "42"),
    ("two hundred and five thousand", "205000"),
    ("one and a half", "1.5"),
    ("a dozen", "12"),
    ("三", "3"),
    ("一百二十三", "123"),
    ("１２３", "123"),
    ("٣٫٥", "3.5"),
    ("2:30", "2.5"),
    ("2 hours and 30 minutes", "2.5"),
    ("x = 5", "5"),
    ("**73**", "73"),
    ("'42'", "42"),
    ("approximately 36.5", "36.5"),
]

NONE = [
    "3-5", "10–20", "2 to 4", "5 ± 1", "5 or 6", "42abc", "5x", "5 x", "5!", "2^{10}", "1,2,3", "1.2.3", "1/0", "1/2/3",
    "3:4", "2 1", "", "-", "no", "x", "1e400000000", "1e-400000000", "9" * (MAX_DIGITS + 1), "--5", "$5 5 cents",
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_values(text: str, value: str) -> None:
    number = parse_number(text)
    assert number is not None and number.value == Fraction(value)


@pytest.mark.parametrize("text", NONE)
def test_what_is_not_one_number(text: str) -> None:
    assert parse_number(text) is None


@pytest.mark.parametrize(
    ("text", "value", "percent", "unit", "decimals"),
    [
        ("13.20%", "0.132", True, None, 2),
        (r"\frac{1}{2}\%", "0.005", True, None, None),
        ("28 percent", "0.28", True, None, 0),
        ("5 cents", "5", False, "¢", 0),
        ("$7.50", "7.5", False, "$", 2),
        ("12cm", "12", False, "cm", 0),
        (r"15\mbox{ cm}^2", "15", False, "cm^2", 0),
        ("4000千克", "4000", False, "kg", 0),
        ("125 Miles", "125", False, "mi", 0),
        ("twelve boxes", "12", False, "box", None),
        (r"74^\circ", "74", False, "°", 0),
    ],
)
def test_percent_unit_and_decimals(
    text: str, value: str, percent: bool, unit: str | None, decimals: int | None
) -> None:
    number = parse_number(text)
    assert number is not None
    assert (number.value, number.percent, number.unit, number.decimals) == (Fraction(value), percent, unit, decimals)


@given(st.fractions(max_denominator=10**6))
def test_canonical_text_reads_back_as_the_same_value(value: Fraction) -> None:
    number = parse_number(f"{value.numerator}/{value.denominator}")
    assert number is not None and number.value == value
    again = parse_number(canonical_number(number))
    assert again is not None and again.value == value


@given(st.integers(min_value=0, max_value=10**15), st.integers(min_value=0, max_value=999))
def test_grouped_and_decimal_forms_are_one_value(whole: int, part: int) -> None:
    english, european, indian = f"{whole:,}.{part:03d}", f"{whole:,}".replace(",", "."), f"{whole}.{part:03d}"
    expected = whole + Fraction(part, 1000)
    assert plain_decimal(english) == expected == plain_decimal(indian)
    if european.count(".") > 1:
        assert plain_decimal(f"{european},{part:03d}") == expected


@given(
    st.integers(min_value=-(10**9), max_value=10**9),
    st.sampled_from(["{}", "${}$", "**{}**", "({})", r"\text{{{}}}", "{}."]),
)
def test_wrapping_changes_nothing(value: int, wrapping: str) -> None:
    number = parse_number(wrapping.format(value))
    assert number is not None and number.value == value and number.decimals == 0


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    number = parse_number(text)
    assert number is None or parse_number(canonical_number(number)) is not None


@given(st.integers(min_value=0, max_value=9999))
def test_chinese_numerals(value: int) -> None:
    digits, places = "零一二三四五六七八九", ["", "十", "百", "千"]
    written = "".join(
        digits[int(digit)] + (place if digit != "0" else "")
        for digit, place in zip(str(value), reversed(places[: len(str(value))]), strict=True)
    )
    assert chinese_value(written) == value


def test_words_that_are_no_number() -> None:
    assert [words_value(text) for text in ("and", "twenty eleven", "two two", "hundred hundred", "five and", "a")] == [
        None, None, None, None, None, Fraction(1),
    ]  # fmt: skip


def test_units_of_one_meaning_have_one_spelling() -> None:
    assert {canonical_unit(text) for text in ("km", "kilometers", "Kilometre")} == {"km"}
    assert {canonical_unit(text) for text in ("dollars", "USD", "$")} == {"$"}
    assert [canonical_unit(text) for text in ("x", "5", "or more", "m^2", "m²", "apples")] == [
        None, None, None, "m^2", "m^2", "apple",
    ]  # fmt: skip


def test_tokens_leave_out_what_only_looks_like_a_number() -> None:
    text = "1. Step 2: H2O and 18x, the 3rd of 5 - 3 = -2; x^2, ratio 3:4, 12cm, list 1,2,3 and $-7"
    assert [str(token.value) for token in tokens(text, 0, len(text))] == ["5", "3", "-2", "12", "1", "2", "3", "-7"]
