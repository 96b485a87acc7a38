"""The requests and answers of ``/v1/chat/completions``, field by field: OpenAI's, and the object ``magicore``.

A field that would change the answer and is not supported is refused by name, never ignored; one whose value asks for
nothing (``tools: []``, ``presence_penalty: 0``) passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from magicore.answers.kinds import Kind

ASKING_NOTHING: Final[Mapping[str, tuple[Any, ...]]] = {
    "audio": (),
    "frequency_penalty": (0,),
    "function_call": ("none", "auto"),
    "functions": ([],),
    "logit_bias": ({},),
    "logprobs": (False,),
    "modalities": (["text"],),
    "parallel_tool_calls": (True, False),
    "prediction": (),
    "presence_penalty": (0,),
    "reasoning_effort": (),
    "response_format": ({"type": "text"},),
    "service_tier": ("auto", "default"),
    "store": (False,),
    "tool_choice": ("none", "auto"),
    "tools": ([],),
    "top_logprobs": (0,),
    "verbosity": (),
    "web_search_options": (),
}
"""Fields of OpenAI's that are not supported -> values of theirs that ask for nothing (``null`` is one of each)."""
WITHOUT_EFFECT: Final = frozenset({"metadata", "prompt_cache_key", "safety_identifier", "user"})
"""Fields that never change an answer, and are let through whatever they hold."""


class Unsupported(ValueError):
    """A field that is refused by name."""

    def __init__(self, field: str) -> None:
        super().__init__(f"{field} is not supported here; leave it out")
        self.field = field


def _whole_characters(text: str) -> str:
    """The text, if it has no half of a surrogate pair, which no tokenizer and no server takes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair is no character") from None
    return text


Text = Annotated[str, AfterValidator(_whole_characters)]


class Strict(BaseModel):
    """Takes the declared fields, each of its own JSON type."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class TextPart(Strict):
    """A part of a message's content; only text is taken."""

    type: Literal["text"]
    text: Text


class ChatMessage(Strict):
    """One message of the conversation."""

    role: Literal["system", "developer", "user", "assistant"]
    content: Text | Annotated[list[TextPart], Field(min_length=1)]

    @model_validator(mode="before")
    @classmethod
    def _asks_nothing_else(cls, value: Any) -> Any:
        """Clients send replies back as they came: empty fields and reasoning go, a call of a tool is refused."""
        if not isinstance(value, Mapping):
            return value
        kept = {name: held for name, held in value.items() if held not in (None, [], {}) or name in cls.model_fields}
        if kept.get("role") == "assistant":
            kept = {name: held for name, held in kept.items() if name not in ("reasoning_content", "reasoning")}
        return kept

    @property
    def text(self) -> str:
        """The content; several parts are joined by line breaks."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.text for part in self.content)


class StreamOptions(Strict):
    """How a stream ends, and what it carries."""

    include_usage: bool | None = Field(default=None, description="Whether a last piece states the usage.")
    include_obfuscation: bool | None = Field(default=None, description="Without effect.")


Limit = Annotated[float, Field(gt=0)]


class MagicoreOptions(BaseModel):
    """What OpenAI's fields cannot say: the answer's kind, limits, and options of the method.

    Every further field is an option of the method, such as ``k``, ``iterations`` or ``weights``.
    """

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)

    kind: Kind | None = Field(default=None, description="How answers are read and compared; inferred if not given.")
    choices: Annotated[list[Text], Field(min_length=2, max_length=26)] | None = Field(
        default=None, description="The options of a multiple-choice question, in order from A; else read from the text."
    )
    question: Text | None = Field(
        default=None,
        description="The question as reviewers and reward models read it; by default the last user message, with the "
        "turns before it.",
    )
    budget: dict[Literal["tokens", "calls", "money", "seconds"], Limit] | None = Field(
        default=None, description="Limits of this request, beside the server's own."
    )
    progress: bool = Field(default=True, description="Whether a stream tells of progress as reasoning.")
    options: dict[str, Any] | None = Field(default=None, description="Options of the method, under their names.")

    @property
    def method_options(self) -> dict[str, Any]:
        """Options of the method: the further fields, and those under ``options``."""
        return {**(self.model_extra or {}), **(self.options or {})}


class ChatRequest(Strict):
    """A request for a chat completion."""

    model: Text = Field(
        min_length=1,
        max_length=1000,
        description="A method, with options after a colon: weighted-self-consistency:k=8,weights=o.",
    )
    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    magicore: MagicoreOptions | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = Field(
        default=None, description="New tokens of each chain at the most."
    )
    max_completion_tokens: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = Field(
        default=None, description="The same under OpenAI's newer name."
    )
    stop: Text | Annotated[list[Text], Field(max_length=16)] | None = Field(
        default=None, description="Strings that end a chain; reviews are not cut at them."
    )
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = Field(
        default=None, description="Equal requests with equal seeds get equal answers, paid for once."
    )
    n: Annotated[int, Field(ge=1, le=1024)] | None = Field(
        default=None, description="Answers, each found independently of the others."
    )
    stream: bool | None = None
    stream_options: StreamOptions | None = None

    @model_validator(mode="before")
    @classmethod
    def _only_what_is_supported(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        for name, neutral in ASKING_NOTHING.items():
            if value.get(name) is not None and not any(_same(value[name], one) for one in neutral):
                raise Unsupported(name)
        return {name: held for name, held in value.items() if name not in ASKING_NOTHING and name not in WITHOUT_EFFECT}

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> ChatRequest:
        limits = {self.max_tokens, self.max_completion_tokens} - {None}
        if len(limits) > 1:
            raise ValueError("max_tokens and max_completion_tokens differ; give one")
        if self.stream_options is not None and not self.stream:
            raise ValueError("stream_options needs stream: true")
        return self

    @property
    def limit(self) -> int | None:
        """The token limit of a chain, under either name."""
        return self.max_completion_tokens if self.max_tokens is None else self.max_tokens

    @property
    def stops(self) -> tuple[str, ...]:
        """The stop strings; empty ones stop nothing."""
        given = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return tuple(one for one in given if one)


def _same(value: Any, neutral: Any) -> bool:
    """Equal, with 0 and false told apart."""
    return bool(value == neutral) and isinstance(value, bool) == isinstance(neutral, bool)


class ErrorDetail(BaseModel):
    """What went wrong."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorBody(BaseModel):
    """The body of every error."""

    error: ErrorDetail


class ReplyMessage(BaseModel):
    """The answer: the best chain of the winning class, verbatim."""

    role: Literal["assistant"]
    content: str
    reasoning_content: str | None = Field(default=None, description="What the model thought before it wrote the chain.")
    refusal: str | None = None


class Choice(BaseModel):
    """One answer; ``magicore`` says how it was found."""

    index: int
    message: ReplyMessage
    finish_reason: Literal["stop", "length", "content_filter"]
    logprobs: None = None
    magicore: dict[str, Any]


class PromptDetails(BaseModel):
    """Parts of the prompt tokens."""

    cached_tokens: int


class CompletionDetails(BaseModel):
    """Parts of the completion tokens."""

    reasoning_tokens: int


class UsageBody(BaseModel):
    """Everything that language models read and wrote for this answer, all roles together."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails
    completion_tokens_details: CompletionDetails


class ChatCompletion(BaseModel):
    """An answer; ``magicore`` holds what it cost by role."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    system_fingerprint: str
    choices: list[Choice]
    usage: UsageBody
    magicore: dict[str, Any]


class ModelBody(BaseModel):
    """One method, as a model."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    description: str


class ModelList(BaseModel):
    """The methods that this server can run."""

    object: Literal["list"]
    data: list[ModelBody]
