from django.db import migrations

from rentals.row_security import EnableTenantPolicies


class Migration(migrations.Migration):

    dependencies = [
        ('account', '0001_initial'),
        ('rentals', '0005_own_models'),
    ]

    operations = [
        EnableTenantPolicies(),
    ]
