"""What is known of a provider's feed: its turns, its runs, what it said that nobody understands yet."""

from datetime import timedelta

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Lower
from simple_history.models import HistoricalRecords

from catalog.feeds import places
from catalog.models.listings import Machine, Provider, known_country
from catalog.visible import name_to_see


class FeedState(models.Model):
    """Whose turn a provider's refresh is and when the next is due.

    A row of its own, so that saving the provider's form never writes an old turn over a running one. The turn is a
    lease: a worker that dies gives it back by the passing of time.
    """

    provider = models.OneToOneField(Provider, on_delete=models.CASCADE, primary_key=True, related_name="feed_state")
    due_at = models.DateTimeField(null=True, blank=True, help_text="Empty: at once.")
    claim = models.UUIDField(null=True, blank=True, help_text="Names the run that may write; empty: none runs.")
    claimed_until = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveIntegerField(default=0, help_text="Runs in a row that brought nothing.")
    offers = models.PositiveIntegerField(default=0, help_text="Offers in the last good list.")
    accepted_until = models.DateTimeField(
        null=True, blank=True, help_text="Until then the next list is applied though it differs suspiciously."
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(claim__isnull=True, claimed_until__isnull=True)
                | Q(claim__isnull=False, claimed_until__isnull=False),
                name="feed_state_claim_has_an_end",
            ),
        ]

    def __str__(self) -> str:
        return f"feed of {self.provider}"


class FeedRunQuerySet(models.QuerySet):
    def that_read_a_list(self) -> "FeedRunQuerySet":
        """Those that are over and had rows before them, whatever became of these."""
        return self.filter(finished_at__isnull=False, seen__gt=0)


class FeedRun(models.Model):
    """One refresh of one provider: how it ended, and how many offers went which way."""

    class Outcome(models.TextChoices):
        RUNNING = "running", "Running"
        OK = "ok", "Applied"
        FAILED = "failed", "Not fetched"
        UNREADABLE = "unreadable", "Not readable"
        EMPTY = "empty", "Empty"
        SHRUNKEN = "shrunken", "Less than half of the list before"
        HELD = "held", "Held for review"
        UNFINISHED = "unfinished", "Applied in part"
        INTERRUPTED = "interrupted", "Interrupted"

    provider = models.ForeignKey(Provider, on_delete=models.CASCADE, related_name="feed_runs")
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=12, choices=Outcome, default=Outcome.RUNNING)
    code = models.CharField(max_length=60, blank=True, help_text="Why it did not end well, in a word.")
    detail = models.TextField(blank=True, help_text="Why it did not end well, in a sentence.")
    seen = models.PositiveIntegerField(default=0, help_text="Rows of the list.")
    offers = models.PositiveIntegerField(default=0, help_text="Rows that can be listed.")
    merged = models.PositiveIntegerField(default=0, help_text="Rows that another row stands for.")
    new = models.PositiveIntegerField(default=0)
    changed = models.PositiveIntegerField(default=0)
    unchanged = models.PositiveIntegerField(default=0)
    gone = models.PositiveIntegerField(default=0, help_text="Machines that are not in the list any more.")
    rejected = models.PositiveIntegerField(default=0)
    skipped = models.PositiveIntegerField(default=0, help_text="Rows that an order held; the next run takes them.")
    rented = models.PositiveIntegerField(default=0, help_text="Machines under rent, left as they are.")
    wire_bytes = models.PositiveBigIntegerField(default=0)
    read_bytes = models.PositiveBigIntegerField(default=0, help_text="After decompression.")

    objects = FeedRunQuerySet.as_manager()

    class Meta:
        ordering = ["-started_at", "-id"]
        indexes = [models.Index(fields=["provider", "-started_at"], name="feed_run_latest")]
        constraints = [
            models.CheckConstraint(
                condition=Q(outcome="running", finished_at__isnull=True)
                | (~Q(outcome="running") & Q(finished_at__isnull=False, finished_at__gte=F("started_at"))),
                name="feed_run_ends_when_it_is_over",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.provider}, {self.started_at:%Y-%m-%d %H:%M:%S} UTC"

    @property
    def is_held(self) -> bool:
        """Whether its list was not applied because it looks like an accident, which staff may say it is not."""
        return self.outcome in (FeedRun.Outcome.SHRUNKEN, FeedRun.Outcome.HELD)

    @property
    def duration(self) -> timedelta | None:
        return None if self.finished_at is None else self.finished_at - self.started_at


class FeedRejection(models.Model):
    """A row of a list that was not taken, and why. Kept for the newest runs only, and the first of them only."""

    run = models.ForeignKey(FeedRun, on_delete=models.CASCADE, related_name="rejections")
    row = models.PositiveIntegerField(help_text="Counted from 1.")
    external_id = models.CharField(max_length=120, null=True, blank=True)
    code = models.CharField(max_length=60)
    detail = models.CharField(max_length=500)

    class Meta:
        ordering = ["run", "row", "id"]

    def __str__(self) -> str:
        return f"row {self.row}: {self.code}"


class FeedQuestion(models.Model):
    """A GPU name or a place that a list used and nobody has explained: kept as written, never guessed.

    The answer is an alias (`catalog.questions.resolve_questions`), which the next refresh of every provider applies.
    """

    class Kind(models.TextChoices):
        GPU = "gpu", "GPU"
        PLACE = "place", "Place"

    provider = models.ForeignKey(Provider, on_delete=models.CASCADE, related_name="feed_questions")
    kind = models.CharField(max_length=5, choices=Kind)
    raw = models.CharField("as written", max_length=200)
    count = models.PositiveIntegerField(default=0, help_text="Offers with it in the last list.")
    example = models.CharField(max_length=300, blank=True, help_text="One of those offers.")
    first_seen_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    resolved_at = models.DateTimeField(null=True, blank=True)
    resolved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    reason = models.CharField(max_length=300, blank=True, help_text="Why it means what was decided.")

    class Meta:
        ordering = ["-count", "raw"]
        constraints = [
            models.UniqueConstraint(fields=["provider", "kind", "raw"], name="feed_question_asked_once"),
            models.CheckConstraint(condition=Q(kind__in=["gpu", "place"]), name="feed_question_kind_known"),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} “{self.raw}”"


class PlaceAlias(models.Model):
    """What a way of writing a place means; without a country it is known to name none ("Earth")."""

    NEVER_TOLD = "No list is read as this: commas around a place, and whatever holds an address, are left out before."

    name = models.CharField(max_length=200, validators=[name_to_see])
    country = models.CharField(
        max_length=2, null=True, blank=True, validators=[known_country], help_text="Empty: it names no country."
    )

    history = HistoricalRecords()

    class Meta:
        verbose_name_plural = "place aliases"
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                Lower("name"), name="place_alias_once", violation_error_message="This way of writing has a meaning."
            ),
            models.CheckConstraint(
                condition=Q(country__isnull=True) | ~Q(country=""), name="place_alias_country_known_or_none"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Raises: ValidationError when no list can say the name, or it is read like another alias."""
        if not places.can_be_told(self.name):
            raise ValidationError({"name": self.NEVER_TOLD}, "never_told")
        for other in PlaceAlias.objects.exclude(pk=self.pk):
            if places.key(other.name) == places.key(self.name):
                raise ValidationError({"name": f"“{other}” has a meaning already, and is read alike."}, "read_alike")


class FeedAbsence(models.Model):
    """How many of the free lots of a machine under rent its provider's last good list does not offer.

    The machine's own row is not touched while it is under rent: what may be sold of it is `free_lots` less `lots`.
    An order lowers both sides alike, and a lot that comes back raises both, so the number stays true until the next
    list. Where the whole machine is missing, `lots` are all of its lots.
    """

    class Why(models.TextChoices):
        GONE = "gone", "Not offered by its provider's list"
        TERMS = "terms", "Its provider's list has stricter terms"
        FEWER = "fewer", "Its provider's list has fewer free lots"

    machine = models.OneToOneField(Machine, on_delete=models.CASCADE, primary_key=True, related_name="feed_absence")
    lots = models.PositiveIntegerField(default=1)
    why = models.CharField(max_length=5, choices=Why, default=Why.GONE)
    detail = models.CharField(max_length=300, blank=True, help_text="Which terms are stricter, and what they are now.")
    since = models.DateTimeField()

    class Meta:
        verbose_name_plural = "feed absences"
        constraints = [
            models.CheckConstraint(
                condition=Q(lots__gte=1, why__in=["gone", "terms", "fewer"]), name="feed_absence_of_a_lot_for_a_reason"
            ),
        ]

    def __str__(self) -> str:
        return str(self.machine)

    @property
    def is_whole(self) -> bool:
        """Whether no lot of the machine is offered, however many are free."""
        return self.why != FeedAbsence.Why.FEWER
