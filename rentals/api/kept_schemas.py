"""The shapes of what an organization keeps beside its orders, for the OpenAPI document."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from catalog.api_schemas import page_of
from rentals.models import WebhookDelivery as DeliveryRow
from rentals.models.searches import MAX_SEARCH_NAME
from rentals.models.webhooks import MAX_DESCRIPTION, MAX_URL, EventKind
from rentals.ssh_keys import MAX_COMMENT, MAX_TEXT
from sizing.api_schemas import AnyValue, ConfigField, ModelReading, OwnFiles, RecommendationsRequest, line

# --- SSH keys -----------------------------------------------------------------------------------------------------


class SshKeyRequest(serializers.Serializer[Any]):
    key = serializers.CharField(
        min_length=1, max_length=MAX_TEXT, help_text="The public key: the one line of a file that ends in .pub."
    )
    name = serializers.CharField(
        max_length=MAX_COMMENT, required=False, allow_null=True, allow_blank=True,
        help_text="In place of the comment in the line.",
    )  # fmt: skip


class SshKey(serializers.Serializer[Any]):
    """A public key, put on the lots that are prepared from its adding on."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    type = serializers.CharField()
    fingerprint = serializers.CharField(help_text="As ssh-keygen -l prints it.")
    key = serializers.CharField(help_text="As a line of authorized_keys.")
    added_at = serializers.DateTimeField()
    added_by = serializers.CharField(allow_null=True, help_text="Who added it: a member or an API key.")
    html_url = serializers.URLField()


# --- Webhooks -----------------------------------------------------------------------------------------------------


class WebhookChange(serializers.Serializer[Any]):
    """What is left out stays as it is."""

    url = serializers.RegexField(
        r"^https://", max_length=MAX_URL, required=False, help_text="Reached from the internet, without #."
    )
    events = serializers.ListField(child=serializers.ChoiceField(EventKind.choices), min_length=1, required=False)
    description = serializers.CharField(
        max_length=MAX_DESCRIPTION, required=False, allow_blank=True, help_text="For you; one line."
    )
    enabled = serializers.BooleanField(required=False, help_text="Turned off, it is told nothing, then or later.")


class WebhookRequest(serializers.Serializer[Any]):
    url = serializers.RegexField(r"^https://", max_length=MAX_URL, help_text="Reached from the internet, without #.")
    events = serializers.ListField(child=serializers.ChoiceField(EventKind.choices), min_length=1)
    description = serializers.CharField(
        max_length=MAX_DESCRIPTION, required=False, allow_null=True, allow_blank=True, help_text="For you; one line."
    )


class Webhook(serializers.Serializer[Any]):
    """An endpoint that is told of events."""

    id = serializers.IntegerField()
    url = serializers.CharField(help_text="A key without the scope `order` reads no further than a question mark.")
    description = serializers.CharField()
    events = serializers.ListField(child=serializers.ChoiceField(EventKind.choices))
    enabled = serializers.BooleanField()
    secret_made_at = serializers.DateTimeField()
    previous_secret_until = serializers.DateTimeField(
        allow_null=True, help_text="Until then the secret before the present one signs too; null: there is none."
    )
    failing_since = serializers.DateTimeField(
        allow_null=True, help_text="The first failure since the last success; null: it answers."
    )
    given_up_at = serializers.DateTimeField(allow_null=True, help_text="When it was turned off because it failed.")
    created_at = serializers.DateTimeField()
    created_by = serializers.CharField(allow_null=True, help_text="Who made it: a member or an API key.")
    html_url = serializers.URLField()


class WebhookWithSecret(Webhook):
    secret = serializers.CharField(help_text="What messages are signed with. It is in this answer and in no other.")


class NewSecretRequest(serializers.Serializer[Any]):
    secret_made_at = serializers.CharField(
        min_length=1, max_length=40,
        help_text="Of the secret that is to be replaced, as the endpoint says it: a repeat replaces no other.",
    )  # fmt: skip


class WebhookAttempt(serializers.Serializer[Any]):
    at = serializers.DateTimeField()
    milliseconds = serializers.IntegerField()
    status = serializers.IntegerField(allow_null=True, help_text="Null: there was no answer.")
    problem = serializers.CharField(allow_null=True, help_text="Why it counts as failed; null: delivered.")
    answer = serializers.CharField(help_text="How the answer began.")


class WebhookDelivery(serializers.Serializer[Any]):
    """What became of one event for one endpoint."""

    endpoint_id = serializers.IntegerField()
    event_id = serializers.UUIDField()
    type = serializers.CharField(help_text="The event.")
    state = serializers.ChoiceField(DeliveryRow.State.choices)
    created_at = serializers.DateTimeField()
    next_attempt_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    attempts = WebhookAttempt(many=True)
    html_url = serializers.URLField()


class WebhookDeliveryWithEvent(WebhookDelivery):
    event = serializers.DictField(child=AnyValue(), help_text="The body of the message.")


# --- Saved searches -----------------------------------------------------------------------------------------------


class SavedSearchRequest(RecommendationsRequest):
    """A question of POST /recommendations under a name."""

    name = line(MAX_SEARCH_NAME, help_text="Each name once; what is sent again as it is kept is found, not made.")


class SavedSearch(serializers.Serializer[Any]):
    """A question that is asked again and again; `machine.available` tells of a machine that appears for it."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    workload = serializers.DictField(child=AnyValue(), help_text="As POST /recommendations takes it.")
    preferences = serializers.DictField(child=AnyValue(), help_text="As POST /recommendations takes them.")
    machine_count = serializers.IntegerField(help_text="How many machines answered it when it was last asked.")
    checked_at = serializers.DateTimeField(help_text="When it was last asked.")
    found_at = serializers.DateTimeField(allow_null=True, help_text="When a machine last appeared.")
    problem = serializers.CharField(allow_null=True, help_text="Why it cannot be asked any more.")
    created_at = serializers.DateTimeField()
    created_by = serializers.CharField(allow_null=True, help_text="Who saved it: a member or an API key.")
    result_url = serializers.URLField(help_text="The page with its answer.")
    html_url = serializers.URLField()


# --- Models of one's own ------------------------------------------------------------------------------------------


@extend_schema_field(
    {
        "type": "object",
        "additionalProperties": True,
        "description": "The whole model in place of `config`: `figures` as POST /models/read gives them.",
    }
)
class FiguresField(serializers.JSONField):
    pass


class OwnModelRequest(OwnFiles):
    """A language model of one's own: by its files, or by figures that you state."""

    config = ConfigField(required=False, allow_null=True)
    figures = FiguresField(required=False, allow_null=True)


class OwnModel(serializers.Serializer[Any]):
    """A model that the organization keeps."""

    slug = serializers.CharField()
    model = serializers.CharField(help_text="What names it in a workload.")
    name = serializers.CharField()
    figures = serializers.DictField(child=AnyValue(), help_text="By the names of the figures of a model.")
    problem = serializers.CharField(allow_null=True, help_text="Why it cannot be chosen any more; null: it can.")
    created_at = serializers.DateTimeField()
    created_by = serializers.CharField(allow_null=True, help_text="Who brought it: a member or an API key.")
    html_url = serializers.URLField()


class OwnModelWithReading(OwnModel):
    reading = ModelReading(help_text="Where each figure came from.")


SshKeyList, WebhookList, WebhookDeliveryList = page_of(SshKey), page_of(Webhook), page_of(WebhookDelivery)
SavedSearchList, OwnModelList = page_of(SavedSearch), page_of(OwnModel)
