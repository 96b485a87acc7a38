"""The words that announce an answer, in English and some other languages, and those that only speak of one."""

import re
from typing import Final

_IS: Final = (
    r"(?:is|are|(?:would|should|will|must|can|could|may|might)\ (?:then\ |also\ |therefore\ )?be"
    r"|(?:would\ |should\ )?leans?\ towards?|to\ be|remains|becomes|equals)"
)
_ADVERB: Final = (
    r"(?:,?\s*(?:therefore|thus|then|hence|simply|just|clearly|indeed|actually|still|also|now|again|likely"
    r"|most\ likely|probably|definitely)\b,?)?"
)
_ABOUT: Final = (
    r"(?:\s+(?:to|for|of|in|from|that|we|you|I|which|as|based|given|after|among|here)\b[^.!?\n:\"]{0,120}?"
    r"(?:\"[^\"\n]{0,160}\"[^.!?\n:\"]{0,80}?)?)?(?:,[^.!?\n:\",]{0,100},)?"
)
ANSWER: Final = re.compile(
    rf"""
    (?P<final>\bfinal\s+(?:\w+\s+)?|\bfinal(?=answer))?
    (?: \banswers?\b
      | \b(?:correct|accurate|appropriate|final|best|revised|updated|right|chosen)
          \ (?:response|option|choice|statement|letter)\b)
    (?:
        [*_\s]{{0,3}}(?:choice|option|letter|value|key)?[*_\s]{{0,3}}(?:\([^()\n]{{0,60}}\))?[*_`\s]{{0,3}}
        (?P<colon>[:=]|\u2192|->)[*_\s]{{0,3}}
      |
        (?:\s+(?:choice|option|letter|value))?{_ABOUT}{_ADVERB}\s*(?<![\w])(?P<is>{_IS})\b{_ADVERB}[*_\s]{{0,3}}:?
      |
        (?P<bare>[*_]{{0,2}}[ \t]*\n|[ \t]+(?=[$\d(\\]))
    )
    """,
    re.VERBOSE | re.IGNORECASE,
)
""" "Answer:", "the final answer to the question is", "Answer" before a line's end or a number."""

_TIE: Final = (
    r"[*_\s]{0,3}(?::|=|\u2192|->|est|es|ist|lautet|è|é|e|är|er|on|jest|là|adalah|有|是|为|為|は|هي|هو|\u2014|-(?=\s))"
    r"(?![a-z])[*_\s]{0,3}:?"
)
ABROAD: Final = re.compile(
    rf"""
    \b(?:r[ée]ponse|respuesta|antwort|risposta|resposta|odpowiedź|đáp\ án|jawaban|svar|vastaus|cevap|resultado
        |r[ée]sultat|ergebnis|lösung|solución|result|resultat|ответ|الإجابة|الجواب)\b(?:[ ]\w{{1,14}})?{_TIE}
    | (?:答案|答え|正解|结果|結果|解答)\s?(?:选项|選項)?\s?(?:是|为|為|は|选|選|[:=])[*_\s]{{0,3}}[:]?
    | (?:정답|답)\s?(?:은|:)[*_\s]{{0,3}}
    | उत्तर\s?(?:है|:)[*_\s]{{0,3}}
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""The same in French, Spanish, German, Italian, Portuguese, Polish, Vietnamese, Indonesian, Swedish, Finnish, Turkish,
Russian, Arabic, Chinese, Japanese, Korean and Hindi; "result:" in English."""

CHANGED: Final = re.compile(
    r"\b(?:revis(?:e|ed|ing)|chang(?:e|ed|ing)|updat(?:e|ed|ing)|correct(?:ed|ing)?|amend(?:ed)?) (?:my|the|our)"
    r" (?:\w+ )?answer (?:to|as)\b:?",
    re.IGNORECASE,
)
"""A change of mind: "I revise my answer to"."""

CORRECTED: Final = re.compile(r"\b[Tt]he (?:correct|corrected|right|actual) (?!answer)(?:\w+ ){1,6}?is (?=[\d$(*-])")
"""A corrected quantity: "the correct number of women left is 14"."""

SECOND_THOUGHT: Final = re.compile(
    r"\b(?:[Ww]ait|[Aa]ctually|[Cc]orrection|[Oo]ops|[Ss]orry|[Nn]o),[^.!?\n]{0,40}?"
    r"\b(?:it's|it is|it should be|should be|it must be|that's)\b(?! not)"
    r"(?=[\s*_$\\(\"']{1,6}(?:-?\d|[A-Z]\b|yes\b|no\b|frac|boxed))"
)
"""A correction on the spot: "Wait, no, it's 6"."""

JUDGEMENT: Final = re.compile(
    r"\s*(?:\bnot\b(?!\s+(?:listed|among|possible|given|provided|available|determin|clear|known|specified|enough))"
    r"|(?:also |indeed |actually |still )?(?:correct|incorrect|wrong|right|accurate|inaccurate|consistent|based|valid"
    r"|reasonable|the same|clear)\b(?!\s*[:,(]?\s*[\d$\\(\[])|unlikely)",
    re.IGNORECASE,
)
"""After "the answer is": words that judge an answer and give none."""

SOMEONE_ELSES: Final = re.compile(
    r"\b(?:previous|initial|earlier|original|first|old|agent'?s?|other agents?'?|their|his|her|student'?s?|author'?s?)"
    r"\W+(?:\w+\W+)?$",
    re.IGNORECASE,
)
"""Before "answer is": words that make it another's answer, or an earlier one."""

HEADING: Final = re.compile(
    r"\n[ \t*_#]*+(?:my\s)?(?:overall\s)?(?:confidence|justification|note|disclaimer|explanation|feedback)\b"
    r"[^\n:]{0,40}:"
    r"|\bconfidence\s*(?:level|score|rating)?[^\n.:]{0,30}(?::|=|\bis\b|\bof\b)",
    re.IGNORECASE,
)
"""A heading under which an answer has ended."""
