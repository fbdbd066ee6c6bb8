"""What an organization lets its members order."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from rentals.models.organizations import ORDERING_ROLES, Organization, Role
from rentals.querysets import TenantQuerySet


class OrganizationPolicy(models.Model):
    """Rules that an organization's owners and admins set; null allows everything. Without a row there is no rule.

    An order holds this row until it is placed or refused, so that two orders at once cannot both fit under the
    month's limit. Units: USD.
    """

    organization = models.OneToOneField(Organization, on_delete=models.CASCADE, related_name="policy")
    tiers = models.JSONField(null=True, blank=True, help_text="Allowed tiers; null: all.")
    countries = models.JSONField(null=True, blank=True, help_text="Allowed country codes and EU; null: all.")
    max_order_usd = models.DecimalField("limit per order (USD)", max_digits=12, decimal_places=2, null=True, blank=True)
    max_month_usd = models.DecimalField(
        "limit per calendar month in UTC (USD)", max_digits=12, decimal_places=2, null=True, blank=True
    )
    order_role = models.CharField("least role that may order", max_length=12, choices=Role, default=Role.MEMBER)
    community_acknowledged = models.BooleanField(
        default=False, help_text="The organization knows that a Community provider can read the session's memory."
    )
    changed_at = models.DateTimeField()
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )

    objects = TenantQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "organization policies"
        ordering = ["organization_id"]
        constraints = [
            models.CheckConstraint(condition=Q(order_role__in=ORDERING_ROLES), name="policy_role_may_order"),
            models.CheckConstraint(
                condition=(Q(max_order_usd__isnull=True) | Q(max_order_usd__gte=0))
                & (Q(max_month_usd__isnull=True) | Q(max_month_usd__gte=0)),
                name="policy_limits_not_negative",
            ),
        ]

    def __str__(self) -> str:
        return f"Policy of {self.organization}"
