from django.apps import AppConfig
from django.db.backends.signals import connection_created

from catalog import digest


class CatalogConfig(AppConfig):
    name = "catalog"

    def ready(self) -> None:
        connection_created.connect(digest.register)
