from django.db import migrations, models
from django.db.models import OuterRef, Subquery


def withhold_all(apps, schema_editor):
    """Until now an absence was of the whole machine."""
    alias = schema_editor.connection.alias
    machines = apps.get_model("catalog", "Machine").objects.using(alias).filter(pk=OuterRef("machine"))
    absences = apps.get_model("catalog", "FeedAbsence").objects.using(alias)
    absences.update(lots=Subquery(machines.values("lots")[:1]))


class Migration(migrations.Migration):
    dependencies = [("catalog", "0005_where_gpus_are")]

    operations = [
        migrations.AddField(
            model_name="feedabsence",
            name="lots",
            field=models.PositiveIntegerField(default=1),
        ),
        migrations.AddField(
            model_name="feedabsence",
            name="why",
            field=models.CharField(
                choices=[
                    ("gone", "Not offered by its provider's list"),
                    ("terms", "Its provider's list has stricter terms"),
                    ("fewer", "Its provider's list has fewer free lots"),
                ],
                default="gone",
                max_length=5,
            ),
        ),
        migrations.AddField(
            model_name="feedabsence",
            name="detail",
            field=models.CharField(
                blank=True, help_text="Which terms are stricter, and what they are now.", max_length=300
            ),
        ),
        migrations.AddConstraint(
            model_name="feedabsence",
            constraint=models.CheckConstraint(
                condition=models.Q(("lots__gte", 1), ("why__in", ["gone", "terms", "fewer"])),
                name="feed_absence_of_a_lot_for_a_reason",
            ),
        ),
        migrations.RunPython(withhold_all, migrations.RunPython.noop),
    ]
