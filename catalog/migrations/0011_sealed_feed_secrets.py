from typing import Any

from django.db import migrations, models

from catalog.sealing import FEEDS


def seal(apps: Any, schema_editor: Any) -> None:
    _each(apps, schema_editor.connection.alias, FEEDS.seal)


def unseal(apps: Any, schema_editor: Any) -> None:
    _each(apps, schema_editor.connection.alias, FEEDS.unseal)


def _each(apps: Any, alias: str, written: Any) -> None:
    # Migrations run as the role that owns the tables; another connection would wait for the locks of this one.
    for provider in apps.get_model("catalog", "Provider").objects.using(alias).exclude(sealed_secret=""):
        provider.sealed_secret = written(provider.sealed_secret)
        provider.save(update_fields=["sealed_secret"])


class Migration(migrations.Migration):
    dependencies = [("catalog", "0010_addresses_of_the_web")]

    operations = [
        migrations.RenameField("provider", "feed_secret", "sealed_secret"),
        migrations.AlterField(
            model_name="provider",
            name="sealed_secret",
            field=models.CharField(
                blank=True,
                editable=False,
                help_text="The feed's secret, sealed: see `feed_secret`.",
                max_length=1000,
            ),
        ),
        migrations.RunPython(seal, unseal, elidable=True),
    ]
