"""The tenant and who belongs to it."""

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q

from rentals.querysets import MembershipQuerySet, OrganizationQuerySet

organization_slug_validator = RegexValidator(
    r"\A[a-z0-9]+(-[a-z0-9]+)*\Z", "Use lower-case letters, digits and hyphens."
)


class Role(models.TextChoices):
    OWNER = "owner", "Owner"
    ADMIN = "admin", "Admin"
    MEMBER = "member", "Member"
    VIEWER = "viewer", "Viewer"


ORDERING_ROLES = (Role.OWNER, Role.ADMIN, Role.MEMBER)
MANAGING_ROLES = (Role.OWNER, Role.ADMIN)


class Organization(models.Model):
    """A tenant: it orders machines and sees its own rows alone. Made at sign-up; its slug never changes."""

    name = models.CharField(max_length=80)
    slug = models.CharField(max_length=64, unique=True, validators=[organization_slug_validator])
    created_at = models.DateTimeField(auto_now_add=True)

    objects = OrganizationQuerySet.as_manager()

    class Meta:
        ordering = ["name", "id"]

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """A user's role in an organization; owners and admins change it, and one owner always stays."""

    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=12, choices=Role, default=Role.MEMBER)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = MembershipQuerySet.as_manager()

    class Meta:
        ordering = ["organization_id", "id"]
        constraints = [
            models.UniqueConstraint(fields=["organization", "user"], name="membership_once_per_organization"),
            models.CheckConstraint(condition=Q(role__in=Role.values), name="membership_role_is_known"),
        ]

    def __str__(self) -> str:
        return f"{self.user} in {self.organization} ({self.role})"

    @property
    def may_order(self) -> bool:
        return self.role in ORDERING_ROLES

    @property
    def may_manage(self) -> bool:
        """Whether this member may add, change and remove members."""
        return self.role in MANAGING_ROLES
