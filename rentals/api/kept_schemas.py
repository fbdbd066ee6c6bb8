"""The shapes of what an organization keeps beside its orders, for the OpenAPI document."""

from typing import Any

from rest_framework import serializers

from catalog.api_schemas import page_of
from rentals.ssh_keys import MAX_COMMENT, MAX_TEXT
from sizing.api_schemas import line

# --- SSH keys -----------------------------------------------------------------------------------------------------


class SshKeyRequest(serializers.Serializer[Any]):
    key = serializers.CharField(
        min_length=1, max_length=MAX_TEXT, help_text="The public key: the one line of a file that ends in .pub."
    )
    name = line(MAX_COMMENT, required=False, allow_null=True, help_text="In place of the comment in the line.")


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


SshKeyList = page_of(SshKey)
