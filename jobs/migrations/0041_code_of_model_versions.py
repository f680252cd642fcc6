import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0039_environments_of_code'),
    ]

    operations = [
        migrations.AddField(
            model_name='modelversion',
            name='code',
            field=models.ForeignKey(help_text='the code that came with the file, or that made it', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='model_versions', to='jobs.codeversion'),
        ),
        migrations.AddField(
            model_name='modelversion',
            name='needs_code',
            field=models.BooleanField(default=False, help_text='the file cannot be loaded without the code; its validation finds out'),
        ),
        migrations.AddField(
            model_name='modelversion',
            name='requirements_digest',
            field=models.CharField(blank=True, help_text='of the packages that the code asks for; empty for none', max_length=64),
        ),
    ]
