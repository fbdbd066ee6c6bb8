"""The tenant's pages. Each URL below /o/<organization>/ is scoped by `rentals.scoping`; a test walks them all."""

from django.urls import URLPattern, path

from rentals.views import (
    entries,
    joining,
    keys,
    members,
    orders,
    organizations,
    own_models,
    planner,
    review,
    saved_searches,
    ssh_keys,
    statements,
    webhooks,
    wizard,
)
from rentals.views.activity import activity
from rentals.views.policy import policy

_ORDER = "o/<slug:organization>/orders/<uuid:order_id>/"
_MEMBER = "o/<slug:organization>/members/<int:membership_id>/"
_WEBHOOK = "o/<slug:organization>/webhooks/<int:endpoint_id>/"
_WEBHOOK_DELIVERY = f"{_WEBHOOK}deliveries/<int:delivery_id>/"
_INVITATION = "o/<slug:organization>/members/invitations/<int:invitation_id>/"

urlpatterns: list[URLPattern] = [
    path("orders/review/", entries.order_review_entry, name="order-review-entry"),
    path("planner/", entries.planner_entry, name="planner-entry"),
    path("invitations/join/", joining.join, name="invitation-join"),
    path("invitations/<slug:token>/", joining.invitation, name="invitation"),
    path("o/new/", organizations.new_organization, name="organization-new"),
    path("o/<slug:organization>/", organizations.dashboard, name="organization"),
    path("o/<slug:organization>/launch/", wizard.launch, name="organization-launch"),
    path("o/<slug:organization>/launch/result/", wizard.launch_result, name="organization-launch-result"),
    path("o/<slug:organization>/models/", own_models.own_models, name="own-models"),
    path("o/<slug:organization>/models/<slug:model_slug>/", own_models.own_model, name="own-model"),
    path(
        "o/<slug:organization>/models/<slug:model_slug>/delete/", own_models.delete_own_model, name="own-model-delete"
    ),
    path("o/<slug:organization>/keys/", keys.keys, name="keys"),
    path("o/<slug:organization>/keys/<int:key_id>/revoke/", keys.revoke, name="key-revoke"),
    path("o/<slug:organization>/policy/", policy, name="policy"),
    path("o/<slug:organization>/activity/", activity, name="activity"),
    path("o/<slug:organization>/members/", members.members, name="members"),
    path(f"{_MEMBER}role/", members.change_role, name="member-role"),
    path(f"{_MEMBER}remove/", members.remove, name="member-remove"),
    path(f"{_MEMBER}transfer/", members.transfer, name="member-transfer"),
    path(f"{_INVITATION}resend/", members.resend_invitation, name="invitation-resend"),
    path(f"{_INVITATION}revoke/", members.revoke_invitation, name="invitation-revoke"),
    path("o/<slug:organization>/ssh-keys/", ssh_keys.ssh_keys, name="ssh-keys"),
    path("o/<slug:organization>/ssh-keys/<int:ssh_key_id>/remove/", ssh_keys.remove, name="ssh-key-remove"),
    path("o/<slug:organization>/webhooks/", webhooks.webhooks, name="webhooks"),
    path(_WEBHOOK, webhooks.webhook, name="webhook"),
    path(f"{_WEBHOOK}secret/", webhooks.rotate, name="webhook-secret"),
    path(f"{_WEBHOOK}test/", webhooks.test, name="webhook-test"),
    path(f"{_WEBHOOK}remove/", webhooks.remove, name="webhook-remove"),
    path(_WEBHOOK_DELIVERY, webhooks.delivery, name="webhook-delivery"),
    path(f"{_WEBHOOK_DELIVERY}replay/", webhooks.replay, name="webhook-replay"),
    path("o/<slug:organization>/searches/", saved_searches.saved_searches, name="saved-searches"),
    path("o/<slug:organization>/searches/<int:search_id>/delete/", saved_searches.delete, name="saved-search-delete"),
    path("o/<slug:organization>/planner/", planner.planner, name="planner"),
    path("o/<slug:organization>/statements/", statements.statements, name="statements"),
    path("o/<slug:organization>/statements/<slug:month>/", statements.statement, name="statement"),
    path("o/<slug:organization>/statements/<slug:month>.csv", statements.statement_csv, name="statement-csv"),
    path("o/<slug:organization>/orders.csv", statements.orders_csv, name="orders-csv"),
    path("o/<slug:organization>/orders/", orders.orders, name="orders"),
    path("o/<slug:organization>/orders/review/", review.order_review, name="order-review"),
    path(_ORDER, orders.order, name="order"),
    path(f"{_ORDER}receipt.json", orders.receipt_json, name="order-receipt"),
    path(f"{_ORDER}allocations/<int:number>/stop/", orders.stop, name="allocation-stop"),
    path(f"{_ORDER}allocations/<int:number>/start/", orders.start, name="allocation-start"),
]
