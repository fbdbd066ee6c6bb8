"""Every address of the console. The apps own their pages; here are the addresses that belong to none of them."""

from django.contrib import admin
from django.urls import include, path

from config.access import admin_login
from config.health import alive, ready
from config.metrics import metrics
from config.status import status
from config.theme import set_theme

admin.site.login = admin_login  # type: ignore[method-assign, assignment]
admin.site.site_header = admin.site.site_title = "Berth administration"
admin.site.index_title = "Catalog, models and orders"

urlpatterns = [
    path("", include("sizing.urls")),
    path("", include("catalog.urls")),
    path("", include("rentals.urls")),
    path("accounts/", include("allauth.urls")),
    path("admin/", admin.site.urls),
    path("api/", include("config.api_urls")),
    path("status/", status, name="status"),
    path("theme/", set_theme, name="set-theme"),
    path("healthz", alive, name="healthz"),
    path("readyz", ready, name="readyz"),
    path("metrics", metrics, name="metrics"),
]

handler400 = "config.errors.bad_request"
handler403 = "config.errors.forbidden"
handler404 = "config.errors.not_found"
# Not one of Django's: allauth asks for it.
handler429 = "config.errors.too_many_requests"
handler500 = "config.errors.server_error"
