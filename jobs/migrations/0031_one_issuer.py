from django.db import migrations


class Migration(migrations.Migration):
    """Removes the columns of the one issuer, which the lists of all issuers replace."""

    dependencies = [("jobs", "0030_issuers_of_issuers")]

    operations = [
        migrations.RemoveField(model_name="user", name="password_issuer"),
        migrations.RemoveField(model_name="apitoken", name="login_issuer"),
        migrations.RemoveField(model_name="promotionrequest", name="requested_by_issuer"),
    ]
