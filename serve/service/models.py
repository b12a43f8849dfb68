"""The bodies of requests and responses."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from casewright.planner.request import MAX_QUESTION_CHARACTERS, check_kept

#: Begins with a letter or a digit: "." and ".." are parts of a path, not names.
ThreadId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._~-]{0,127}$")]
Scope = Annotated[
    dict[str, str],
    Field(
        default_factory=dict,
        max_length=16,
        description="Who asks within the tenant, by the domain's scope fields (shopping: "
        "customer), all of them. Tools read it, no plan can write it.",
    ),
]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _can_be_kept(cls, body: Any) -> Any:
        try:
            check_kept(body)
        except UnicodeEncodeError:
            raise ValueError("it holds half of a surrogate pair") from None
        except TypeError as error:
            raise ValueError(str(error)) from None
        return body


class TurnBody(_Request):
    """An earlier turn of the conversation."""

    question: str
    answer: str


class AskBody(_Request):
    """A question. Its tenant follows from the token alone."""

    question: str = Field(
        min_length=1,
        max_length=MAX_QUESTION_CHARACTERS,
        examples=["How much memory is on my Galaxy phone?"],
    )
    context: dict[str, JsonValue] = Field(
        default_factory=dict,
        # Plans are checked and drawn with all of its fields.
        max_length=256,
        description="What is known beside the question.",
        examples=[{}],
    )
    history: list[TurnBody] = Field(default_factory=list, max_length=50, examples=[[]])
    scope: Scope
    thread_id: ThreadId | None = Field(
        None,
        description="Keeps the run under this name, so that it can be resumed and read. "
        "Letters, digits, . _ ~ -, at most 128.",
        examples=["visit-1"],
    )


class RunPlanBody(AskBody):
    """A question with the plan that is run for it."""

    plan: str = Field(
        min_length=1,
        max_length=MAX_QUESTION_CHARACTERS,
        description="The plan, a step a line.",
        examples=["s1 = no_evidence()"],
    )


class ResumeBody(_Request):
    """The resumption of a run."""

    scope: Scope
    reply: JsonValue = Field(None, description="The reply to a tool.", examples=["the red one"])
    reply_to: str | None = Field(
        None, max_length=128, description="The question's id.", examples=["7a1c….9f02…"]
    )

    @model_validator(mode="after")
    def _names_its_question(self) -> ResumeBody:
        if ("reply" in self.model_fields_set) != (self.reply_to is not None):
            raise ValueError("reply and reply_to go together")
        return self


class CorrectionBody(_Request):
    """A question with its right plan."""

    question: str = Field(min_length=1, max_length=MAX_QUESTION_CHARACTERS, examples=["hello"])
    plan: str = Field(
        min_length=1,
        max_length=MAX_QUESTION_CHARACTERS,
        description="The right plan, a step a line.",
        examples=["s1 = no_evidence()"],
    )
    context: dict[str, JsonValue] = Field(
        default_factory=dict, description="What was known beside the question.", examples=[{}]
    )
    history: list[TurnBody] = Field(default_factory=list, max_length=50, examples=[[]])


class _Response(BaseModel):
    model_config = ConfigDict(extra="allow")


class CorrectedBody(_Response):
    """The outcome of a correction."""

    id: str = Field(description="Of the annotated message.")
    outcome: Literal["added", "replaced", "unchanged"]


class KeptBody(_Response):
    """The outcome of keeping an answer as a case."""

    id: str
    outcome: Literal["added", "updated", "unchanged", "duplicate", "refused"]
    reason: str = ""


class AnswerBody(_Response):
    """The answer, with its plan, steps and evidence."""

    text: str = Field(description="The answer; [E1] cites the evidence of that id.")
    citations: list[str]
    evidence: list[dict[str, Any]]
    missing: list[str] = Field(description="One sentence for each step that found nothing.")
    plan: str
    planner: dict[str, Any]
    generator: str
    steps: list[dict[str, Any]]
    usage: dict[str, Any]
    run_id: str
    thread_id: str | None = None
    retained: KeptBody | None = None


class PlanStepBody(_Response):
    """A step of a plan, for drawing a graph."""

    id: str
    tool: str
    call: str = Field(description="The tool and its arguments, as in the plan.")
    needs: list[str] = Field(description="The steps whose results it refers to.")


class PlannedBody(_Response):
    """A plan that was not run."""

    plan: str = Field(description="A step a line, as run_plan takes it.")
    plan_steps: list[PlanStepBody]
    planner: dict[str, Any]


class ResumedBody(AnswerBody):
    """The answer of a resumed run, with its plan's steps."""

    plan_steps: list[PlanStepBody]


class FinishedStep(_Response):
    """A finished step, which is not repeated by a resumption."""

    id: str
    tool: str
    status: Literal["done", "empty", "failed", "timed_out", "skipped"]
    milliseconds: float


class QuestionBody(_Response):
    """A tool's open question."""

    id: str = Field(description="The reply_to of a reply to it.")
    question: Any


class ThreadBody(_Response):
    """A thread's present state."""

    thread_id: str
    status: Literal["answered", "running", "interrupted", "waiting"] = Field(
        description="waiting: a tool waits for a reply; interrupted: the run can be resumed."
    )
    question: str
    plan: str | None = None
    plan_steps: list[PlanStepBody] = Field([], description="The plan's steps; not in /ask's 202.")
    steps: list[FinishedStep] = Field([], description="The finished steps.")
    questions: list[QuestionBody] = Field([], description="The open questions of tools.")
    answer: dict[str, Any] | None = None


class RunBody(_Response):
    """A saved run."""

    question: str = Field(description="The question; empty if the file does not say.")
    answer: dict[str, Any]
    plan_steps: list[PlanStepBody]


class AboutBody(_Response):
    """The service's domain, and what answers."""

    version: str
    domain: str
    description: str
    questions: list[str] = Field(description="Questions to try.")
    planner: str
    generator: str
    tools: list[str]
    scopes: dict[str, list[str]] = Field(description="The fields' values; empty with tokens.")
    retain: Literal["off", "verified", "approved"]
    corrections: bool = Field(description="Whether plans can be corrected here.")


class CaseBody(_Response):
    """A kept answer of the tenant."""

    id: str
    question: str
    answer: str
    plan: str
    citations: list[str]
    sources: list[str]
    kept_by: Literal["verified", "approved"]
    created: str


class CasesBody(_Response):
    """Kept answers of the tenant, the newest first."""

    total: int
    cases: list[CaseBody]


class HealthBody(_Response):
    """The service's health."""

    status: Literal["alive", "ready"]


class Problem(BaseModel):
    """An error by RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[dict[str, str]] | None = None
