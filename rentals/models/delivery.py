"""How a lot is reached: the organization's SSH public keys, and what staff enter when they hand a lot over."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from rentals.models.orders import Allocation
from rentals.models.organizations import Organization
from rentals.querysets import TenantQuerySet


class SshKey(models.Model):
    """A public key of an organization, put on its lots when they are prepared. Only `rentals.ssh_keys` writes it."""

    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=24, help_text="The key's type as SSH names it.")
    blob = models.TextField(help_text="The key itself, in base64.")
    comment = models.CharField(max_length=100)
    fingerprint = models.CharField(max_length=64, help_text="SHA256:…, as ssh-keygen -l prints it.")
    added_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    added_by_name = models.CharField(max_length=254, blank=True)
    added_at = models.DateTimeField()

    objects = TenantQuerySet.as_manager()

    class Meta:
        verbose_name = "SSH key"
        ordering = ["organization_id", "comment", "id"]
        constraints = [
            models.UniqueConstraint(fields=["organization", "fingerprint"], name="ssh_key_once_per_organization"),
        ]

    def __str__(self) -> str:
        return f"{self.comment} ({self.fingerprint})"

    @property
    def line(self) -> str:
        """The key as a line of authorized_keys."""
        return f"{self.kind} {self.blob} {self.comment}"


class Connection(models.Model):
    """Where a lot answers. Who may order sees it, on the page and over the API; it is in no event, mail or trail."""

    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="+")
    allocation = models.OneToOneField(Allocation, on_delete=models.CASCADE, related_name="connection")
    host = models.CharField(max_length=253)
    port = models.PositiveIntegerField(default=22)
    login = models.CharField("user", max_length=32)
    notes = models.CharField(max_length=1000, blank=True)
    corrections = models.PositiveIntegerField(default=0, help_text="How often it was changed since the handing-over.")
    changed_at = models.DateTimeField()

    objects = TenantQuerySet.as_manager()

    class Meta:
        ordering = ["allocation_id"]
        constraints = [
            models.CheckConstraint(condition=Q(port__gte=1) & Q(port__lte=65535), name="connection_port_is_a_port"),
            models.CheckConstraint(condition=~Q(host="") & ~Q(login=""), name="connection_has_host_and_user"),
        ]

    def __str__(self) -> str:
        return f"Connection of {self.allocation_id}"

    @property
    def command(self) -> str:
        port = "" if self.port == 22 else f"-p {self.port} "
        return f"ssh {port}{self.login}@{self.host}"
