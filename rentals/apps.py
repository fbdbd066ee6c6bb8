from django.apps import AppConfig


class RentalsConfig(AppConfig):
    name = "rentals"

    def ready(self) -> None:
        from rentals import checks  # noqa: F401 - it registers the checks
