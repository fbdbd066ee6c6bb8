"""A chain of stages on one GPU, such as a multimodal pipeline: everything resident, or loaded step by step."""

from dataclasses import dataclass

from sizing.engine.errors import InvalidWorkload

KEPT, STEP = "kept", "step"
MAX_STAGES = 20


@dataclass(frozen=True)
class Stage:
    """One stage: its weights, and what it needs besides them while it runs.

    Units: bytes. `load` is `kept` (loaded all the time) or `step` (loaded for its own step alone).
    Raises: InvalidWorkload naming the field.
    """

    name: str
    weights_bytes: int
    working_bytes: int
    load: str = KEPT

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise InvalidWorkload("a stage needs a name", field="name")
        if self.load not in (KEPT, STEP):
            raise InvalidWorkload("load must be kept or step", field="load")
        for field in ("weights_bytes", "working_bytes"):
            if getattr(self, field) < 0:
                raise InvalidWorkload(f"{field} must be 0 or more", field=field)

    @property
    def is_kept(self) -> bool:
        return self.load == KEPT


@dataclass(frozen=True)
class Step:
    """What is loaded while one stage runs: the kept stages, its own weights if not among them, its working memory."""

    stage: Stage
    kept: tuple[Stage, ...]

    @property
    def kept_bytes(self) -> int:
        return sum(stage.weights_bytes for stage in self.kept)

    @property
    def own_weights_bytes(self) -> int:
        return 0 if self.stage.is_kept else self.stage.weights_bytes

    @property
    def total_bytes(self) -> int:
        return self.kept_bytes + self.own_weights_bytes + self.stage.working_bytes


@dataclass(frozen=True)
class Chain:
    """Stages that run one after another, never two at once; so only one working memory is in use at a time.

    Nothing is added to the stages' own figures: no margin, no runtime.
    Raises: InvalidWorkload naming the field.
    """

    stages: tuple[Stage, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.stages) <= MAX_STAGES:
            raise InvalidWorkload(f"a chain has 1 to {MAX_STAGES} stages", field="stages")

    @property
    def weights_bytes(self) -> int:
        return sum(stage.weights_bytes for stage in self.stages)

    @property
    def kept(self) -> tuple[Stage, ...]:
        return tuple(stage for stage in self.stages if stage.is_kept)

    @property
    def most_working(self) -> Stage:
        """The stage with the largest working memory; the first of equals."""
        return max(self.stages, key=lambda stage: stage.working_bytes)

    @property
    def resident_bytes(self) -> int:
        """Every stage's weights loaded all the time, and the largest working memory."""
        return self.weights_bytes + self.most_working.working_bytes

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(Step(stage, self.kept) for stage in self.stages)

    @property
    def largest_step(self) -> Step:
        """The step that decides what step-by-step loading needs; the first of equals."""
        return max(self.steps, key=lambda step: step.total_bytes)

    @property
    def stepwise_bytes(self) -> int:
        return self.largest_step.total_bytes
