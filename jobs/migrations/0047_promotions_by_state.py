from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0046_summary_of_code")]

    operations = [
        migrations.AddIndex("promotionrequest", models.Index(fields=["state"], name="promotions_by_state")),
    ]
