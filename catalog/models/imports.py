"""Files that staff uploaded and have not confirmed yet."""

from django.conf import settings
from django.db import models


class ImportDraft(models.Model):
    """An uploaded file between its preview and its confirmation, and a digest of what the preview showed.

    In the database, because the next request may reach another process on another host; it is its uploader's alone.
    """

    key = models.UUIDField(primary_key=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    table = models.CharField(max_length=40)
    file_name = models.CharField(max_length=200)
    content = models.BinaryField()
    reason = models.CharField(max_length=90)
    shown = models.CharField(max_length=64)
    created_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return self.file_name
