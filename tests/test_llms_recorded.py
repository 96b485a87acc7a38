"""Recorded responses: what is written is read back, and what is missing or damaged is named."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from magicore.errors import CapabilityError, InputError, RequestRefused
from magicore.llms.base import Generation, LanguageModel, Request, messages
from magicore.llms.recorded import RecordedModel, RecordingModel
from magicore.llms.scripted import ScriptedModel, ScriptedReply
from magicore.types import CallKey, Usage

KEY = CallKey(problem="p/1", role="refiner", instance=1, round=2, parent="p/1/solver/0/0/3")
REQUEST = Request(messages=messages(("user", "What is 2 + 3?")), key=KEY, indices=(0, 1), logprobs=True, top_logprobs=1)


def ask(model: LanguageModel, request: Request) -> Generation:
    return asyncio.run(model.generate(request))


def close(model: LanguageModel) -> None:
    asyncio.run(model.aclose())


def test_what_was_recorded_is_replayed_whole(tmp_path: Path) -> None:
    replies = ScriptedReply(text="fünf\u2028 5", thinking="2 + 3", token_logprobs=(-0.5, -0.25, -1e-9, -2.0, -3.0))
    recording = RecordingModel(ScriptedModel(lambda *_: replies), tmp_path / "file.jsonl")
    first = ask(recording, REQUEST)
    ask(recording, REQUEST)
    close(recording)
    assert len((tmp_path / "file.jsonl").read_text(encoding="utf-8").strip().split("\n")) == 2
    recorded = RecordedModel(tmp_path / "file.jsonl")
    assert ask(recorded, replace(REQUEST, messages=messages(("user", "other words")))) == first
    assert ask(recorded, replace(REQUEST, indices=(1,))).completions == first.completions[1:]
    close(recorded)


def test_recording_goes_on_in_the_same_file(tmp_path: Path) -> None:
    for _ in range(2):
        recording = RecordingModel(ScriptedModel(lambda _, index: str(index), logprobs=True), tmp_path / "file.jsonl")
        ask(recording, REQUEST)
        close(recording)
    ask(recording := RecordingModel(ScriptedModel(lambda *_: "x", logprobs=True), tmp_path / "file.jsonl"), REQUEST)
    close(recording)
    lines = (tmp_path / "file.jsonl").read_text().splitlines()
    assert [json.loads(line)["text"] for line in lines] == ["0", "1"]


def write(path: Path, *lines: object) -> Path:
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path


def test_a_line_needs_only_what_a_person_would_write(tmp_path: Path) -> None:
    path = write(tmp_path / "f.jsonl", {"problem": "1", "role": "solver", "index": 0, "text": "5", "tokens": 4})
    model = RecordedModel(path)
    [completion] = ask(model, Request(messages=(), key=CallKey(problem="1", role="solver"))).completions
    assert (completion.text, completion.stop, completion.tokens) == ("5", "stop", 4)
    assert completion.usage == Usage(completion=4, calls=1, unmetered=1)
    with pytest.raises(CapabilityError, match="token_logprobs were asked for and are not on record"):
        ask(model, Request(messages=(), key=CallKey(problem="1", role="solver"), logprobs=True))
    close(model)


def test_missing_responses_are_left_out_and_all_missing_is_an_error(tmp_path: Path) -> None:
    model = RecordedModel(write(tmp_path / "f.jsonl", {"problem": "1", "role": "solver", "index": 0, "text": "5"}))
    key = CallKey(problem="1", role="solver")
    assert [one.index for one in ask(model, Request(messages=(), key=key, indices=(0, 1))).completions] == [0]
    with pytest.raises(RequestRefused, match=r"problem '1', role solver, instance 0, round 0, index 1$"):
        ask(model, Request(messages=(), key=key, indices=(1, 2)))
    with pytest.raises(RequestRefused, match=r"role refiner, instance 0, round 1, parent '1/solver/0/0/0', index 0"):
        ask(model, Request(messages=(), key=CallKey(problem="1", role="refiner", round=1, parent="1/solver/0/0/0")))
    close(model)


GOOD = {"problem": "1", "role": "solver", "index": 0, "text": "5"}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{not json", r"line 2: is not JSON"),
        ("[]", r"line 2: is not a JSON object"),
        ({**GOOD}, r"line 2: a second response for problem '1', role solver"),
        ({**GOOD, "index": "1"}, r"line 2: index is '1'; a whole number is needed"),
        ({**GOOD, "index": True}, r"line 2: index is True; a whole number is needed"),
        ({"problem": "1", "role": "solver", "index": 1}, r"line 2: text is missing; a string is needed"),
        ({**GOOD, "index": 1, "stop": "eos"}, r"line 2: stop is 'eos'; it is one of stop, length, filter, error"),
        ({**GOOD, "index": 1, "token_logprobs": ["x"]}, r"line 2: log-probabilities or usage cannot be read"),
        ({**GOOD, "index": 1, "usage": {"dollars": 1}}, r"line 2: log-probabilities or usage cannot be read"),
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: object, says: str) -> None:
    with pytest.raises(InputError, match=says):
        RecordedModel(write(tmp_path / "f.jsonl", GOOD, line))


def test_files_that_are_not_there_or_empty(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent.jsonl: cannot be read \(No such file"):
        RecordedModel(tmp_path / "absent.jsonl")
    with pytest.raises(InputError, match="holds no recorded response"):
        RecordedModel(write(tmp_path / "empty.jsonl"))
    with pytest.raises(InputError, match="cannot be written"):
        RecordingModel(ScriptedModel(lambda *_: ""), tmp_path)
