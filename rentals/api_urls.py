"""The tenant's addresses of the API. Which organization they are about is the key's to say."""

from django.urls import URLPattern, path

from rentals.api import orders, own, own_models, planner, saved_searches, ssh_keys, webhooks

_ALLOCATION = "orders/<uuid:order_id>/allocations/<int:number>/"
_WEBHOOK = "webhooks/<int:endpoint_id>"
_DELIVERY = f"{_WEBHOOK}/deliveries/<uuid:event_id>"

urlpatterns: list[URLPattern] = [
    path("quotes", orders.QuotesView.as_view(), name="api-quotes"),
    path("planner", planner.PlannerView.as_view(), name="api-planner"),
    path("orders", orders.OrdersView.as_view(), name="api-orders"),
    path("orders/<uuid:order_id>", orders.OrderView.as_view(), name="api-order"),
    path(f"{_ALLOCATION}stop", orders.StopView.as_view(), name="api-allocation-stop"),
    path(f"{_ALLOCATION}start", orders.StartView.as_view(), name="api-allocation-start"),
    path("key", own.KeyView.as_view(), name="api-key"),
    path("organization", own.OrganizationView.as_view(), name="api-organization"),
    path("policy", own.PolicyView.as_view(), name="api-policy"),
    path("usage", own.UsageView.as_view(), name="api-usage"),
    path("members", own.MembersView.as_view(), name="api-members"),
    path("audit", own.AuditView.as_view(), name="api-audit"),
    path("ssh-keys", ssh_keys.SshKeysView.as_view(), name="api-ssh-keys"),
    path("ssh-keys/<int:ssh_key_id>", ssh_keys.SshKeyView.as_view(), name="api-ssh-key"),
    path("own-models", own_models.OwnModelsView.as_view(), name="api-own-models"),
    path("own-models/<str:model_slug>", own_models.OwnModelView.as_view(), name="api-own-model"),
    path("webhooks", webhooks.WebhooksView.as_view(), name="api-webhooks"),
    path(_WEBHOOK, webhooks.WebhookView.as_view(), name="api-webhook"),
    path(f"{_WEBHOOK}/secret", webhooks.WebhookSecretView.as_view(), name="api-webhook-secret"),
    path(f"{_WEBHOOK}/test", webhooks.WebhookTestView.as_view(), name="api-webhook-test"),
    path(f"{_WEBHOOK}/deliveries", webhooks.WebhookDeliveriesView.as_view(), name="api-webhook-deliveries"),
    path(_DELIVERY, webhooks.WebhookDeliveryView.as_view(), name="api-webhook-delivery"),
    path(f"{_DELIVERY}/replay", webhooks.WebhookReplayView.as_view(), name="api-webhook-replay"),
    path("saved-searches", saved_searches.SavedSearchesView.as_view(), name="api-saved-searches"),
    path("saved-searches/<int:search_id>", saved_searches.SavedSearchView.as_view(), name="api-saved-search"),
]
