"""The bodies of requests and responses."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from casewright.planner.request import MAX_QUESTION_CHARACTERS, check_storable

#: A thread id begins with a letter or a digit, since clients resolve "." and ".." in URLs.
ThreadId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._~-]{0,127}$")]
Scope = Annotated[
    dict[str, str],
    Field(
        default_factory=dict,
        max_length=16,
        description="The identity of the user within the tenant: a value for each scope field of "
        "the domain (shopping: customer). Tools read the values; no plan can set them.",
    ),
]

#: ``Limits.within`` checks a budget's values.
Budget = Annotated[
    dict[str, JsonValue],
    Field(
        max_length=16,
        description="Maximum calls, seconds, cost or tokens of a plan; tool_calls: calls by tool.",
        examples=[{"calls": 4, "tool_calls": {"prod_search": 2}}],
    ),
]

Context = Annotated[
    dict[str, JsonValue],
    # The number of fields is limited, since each check of a plan reads all fields.
    Field(
        default_factory=dict,
        max_length=256,
        description="Known facts, for example the open page.",
        examples=[{}],
    ),
]
ParameterValues = Annotated[
    dict[str, str | int | float | bool], Field(default_factory=dict, max_length=32, examples=[{}])
]
PlanText = Annotated[
    str,
    Field(
        max_length=MAX_QUESTION_CHARACTERS,
        description="The plan, one step per line.",
        examples=["s1 = no_evidence()"],
    ),
]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _check_can_be_stored(cls, body: Any) -> Any:
        try:
            check_storable(body)
        except UnicodeEncodeError:
            raise ValueError("it holds half of a surrogate pair") from None
        except TypeError as error:
            raise ValueError(str(error)) from None
        return body


class TurnBody(_Request):
    """An earlier turn of the conversation."""

    question: str
    answer: str


History = Annotated[list[TurnBody], Field(default_factory=list, max_length=50, examples=[[]])]


class PlanBody(_Request):
    """A question to plan for. The token determines the tenant."""

    question: str = Field(
        min_length=1,
        max_length=MAX_QUESTION_CHARACTERS,
        examples=["How much memory is on my Galaxy phone?"],
    )
    context: Context
    history: History
    scope: Scope
    budget: Budget | None = None


class AskBody(PlanBody):
    """A question to answer. The token determines the tenant."""

    approve: Literal["declared", "always"] | Budget = Field(
        "declared",
        description="Which plans wait for approval: those with a tool that declares approval, all "
        "(always), or those above a price. The service's setting applies too. Needs a thread_id.",
    )
    thread_id: ThreadId | None = Field(
        None,
        description="A name for the stored run, by which the run can be read and resumed. It has "
        "at most 128 letters, digits, . _ ~ -.",
        examples=["visit-1"],
    )
    mend: Literal["off", "empty", "failure"] = Field(
        "off",
        description="When to replan the remaining steps, once: after a failed step (failure), or "
        "after a step that failed or found nothing (empty).",
    )
    deadline: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        description="Seconds after which the run answers from the evidence found so far. The "
        "answer's missing lists the steps without evidence.",
        examples=[None],
    )


class PinnedAsk(AskBody):
    """A question and the planner that returns its pinned plan; not the body of any request."""

    planner: Any = None


class DiffBody(_Request):
    """Two plans to compare."""

    first: PlanText
    second: PlanText


class PinBody(_Request):
    """A plan to pin: a question with its plan, or the text of a pinned plan's file."""

    question: str = Field(
        "", max_length=MAX_QUESTION_CHARACTERS, examples=["How warm is the mill?"]
    )
    plan: PlanText = ""
    parameters: ParameterValues = Field(
        description="Parameters with their values in question and plan, which a run can replace."
    )
    file: str | None = Field(
        None,
        max_length=65_536,
        description="The text of a file by casewright plans pin, instead of question and plan.",
        examples=[None],
    )
    context: Context
    replace: bool = Field(False, description="Replace a plan of this name.")

    @model_validator(mode="after")
    def _check_source(self) -> PinBody:
        other_fields = {"question", "plan", "parameters"} & self.model_fields_set
        if self.file is not None and other_fields:
            raise ValueError("file stands alone: leave out question, plan and parameters")
        if self.file is None and not (self.question.strip() and self.plan):
            raise ValueError("give question and plan, or file")
        return self


class RunPlanBody(_Request):
    """The inputs with which to run a pinned plan. The token determines the tenant."""

    values: ParameterValues = Field(
        alias="with",
        description="A value for each parameter to change, of the type of the parameter's default.",
    )
    context: Context
    scope: Scope
    budget: Budget | None = None
    approve: Literal["declared", "always"] | Budget = "declared"
    thread_id: ThreadId | None = Field(None, examples=["visit-1"])


class WrittenPlanBody(AskBody):
    """A question with the plan to run."""

    plan: PlanText


class ResumeBody(_Request):
    """The scope and the replies with which a run resumes."""

    scope: Scope
    replies: dict[Annotated[str, Field(max_length=128)], JsonValue] | None = Field(
        None,
        min_length=1,
        max_length=256,
        description="The reply to each question, by question id; the reply to an approval is "
        '"yes", "no", or the text of a plan.',
        examples=[{"7a1c….9f02…": "the red one"}],
    )


class CorrectionBody(_Request):
    """A question with its right plan."""

    question: str = Field(min_length=1, max_length=MAX_QUESTION_CHARACTERS, examples=["hello"])
    plan: PlanText
    context: Context
    history: History


class _Response(BaseModel):
    model_config = ConfigDict(extra="allow")


class CorrectedBody(_Response):
    """The outcome of a correction."""

    id: str = Field(description="The id of the annotated message.")
    outcome: Literal["added", "replaced", "unchanged"]


class RetainedBody(_Response):
    """The outcome of retaining an answer as a case."""

    id: str
    outcome: Literal["added", "updated", "unchanged", "duplicate", "refused"]
    reason: str = ""


class AnswerBody(_Response):
    """The answer, with its plan, steps and evidence."""

    text: str = Field(description="The answer; [E1] cites the evidence with the id E1.")
    citations: list[str]
    evidence: list[dict[str, Any]]
    missing: list[str] = Field(description="One sentence for each step that found nothing.")
    plan: str
    planner: dict[str, Any]
    generator: str
    steps: list[dict[str, Any]]
    usage: dict[str, Any]
    run_id: str
    refused: bool = Field(False, description="True if no evidence answers the question.")
    thread_id: str | None = None
    retained: RetainedBody | None = None


class PlanStepBody(_Response):
    """A step of a plan, for drawing a graph."""

    id: str
    tool: str
    call: str = Field(description="The tool and its arguments, as in the plan.")
    needs: list[str] = Field(description="The ids of the steps whose results this step uses.")


class PlannedBody(_Response):
    """A plan that was not run, with its price."""

    plan: str
    plan_steps: list[PlanStepBody]
    planner: dict[str, Any] = Field(description="Has the price and the steps that a budget omits.")


class PinnedBody(_Response):
    """A pinned plan, and the changes of its tools."""

    name: str
    question: str = Field(description="The question, with {parameter} for each parameter.")
    plan: str
    parameters: dict[str, Any] = Field(
        description="Each parameter with its default, which is its value at pinning."
    )
    context: list[str] = Field(description="The context fields that the plan needs.")
    tools: list[str]
    differences: list[str] = Field(
        description="Changes of the plan's tools since pinning; with a change, the plan is refused."
    )


class PinnedListBody(_Response):
    """The pinned plans of the service."""

    plans: list[PinnedBody]


class DifferenceBody(_Response):
    """The differences between two plans, by step."""

    same: bool
    steps: list[dict[str, Any]] = Field(
        description="Each step with its change (same, changed, only_first, only_second), its text "
        "in each plan, and the arguments that differ."
    )


class ResumedBody(AnswerBody):
    """The answer of a resumed run, with its plan's steps."""

    plan_steps: list[PlanStepBody]


class FinishedStep(_Response):
    """A finished step, which a resumed run does not repeat."""

    id: str
    tool: str
    status: Literal["done", "empty", "failed", "timed_out", "skipped"]
    milliseconds: float


class QuestionBody(_Response):
    """An open question, of a tool or of an approval."""

    id: str = Field(description="The id that a reply names.")
    question: Any


class ThreadBody(_Response):
    """The state of a thread."""

    thread_id: str
    status: Literal["answered", "running", "interrupted", "waiting"] = Field(
        description="waiting: questions need replies; interrupted: the run can be resumed."
    )
    question: str
    plan: str | None = None
    plan_steps: list[PlanStepBody] = Field([], description="The plan's steps; /ask returns none.")
    steps: list[FinishedStep] = Field([], description="The finished steps.")
    questions: list[QuestionBody] = Field([], description="The open questions.")
    answer: dict[str, Any] | None = None


class RunBody(_Response):
    """A saved run."""

    question: str = Field(description="The question; empty if the file has none.")
    answer: dict[str, Any]
    plan_steps: list[PlanStepBody]


class AboutBody(_Response):
    """The service's domain, planner, generator and options."""

    version: str
    domain: str
    description: str
    questions: list[str] = Field(description="Questions to try.")
    planner: str
    generator: str
    tools: list[str]
    scopes: dict[str, list[str]] = Field(description="Values by scope field; empty with tokens.")
    retain: Literal["off", "verified", "approved"]
    corrections: bool = Field(description="True if plans can be corrected.")
    pinning: bool = Field(description="True if plans can be pinned over HTTP.")


class CaseBody(_Response):
    """A retained answer of the tenant."""

    id: str
    question: str
    answer: str
    plan: str
    citations: list[str]
    sources: list[str]
    kept_by: Literal["verified", "approved"]
    created: str


class CasesBody(_Response):
    """Retained answers of the tenant, the newest first."""

    total: int
    cases: list[CaseBody]


class HealthBody(_Response):
    """The service's health."""

    status: Literal["alive", "ready"]


class Problem(BaseModel):
    """An error in the format of RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[dict[str, str]] | None = None
