"""Adds rungs, results copied between duplicate trials, and the numbers behind each decision."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("jobs", "0004_loose_metric_chunks")]

    operations = [
        migrations.AddField(
            model_name='trial',
            name='answered_by',
            field=models.ForeignKey(help_text='the trial with equal values whose scores were copied; it was not trained', null=True, on_delete=django.db.models.deletion.RESTRICT, related_name='answers', to='jobs.trial'),
        ),
        migrations.AddField(
            model_name='trial',
            name='bracket',
            field=models.PositiveIntegerField(default=0, help_text='index of its Hyperband bracket'),
        ),
        migrations.AddField(
            model_name='trial',
            name='epochs',
            field=models.PositiveIntegerField(help_text='last epoch of its rung; null: all epochs', null=True),
        ),
        migrations.AddField(
            model_name='trial',
            name='rung',
            field=models.PositiveIntegerField(default=0, help_text='number of promotions'),
        ),
        migrations.AddField(
            model_name='trial',
            name='rungs',
            field=models.JSONField(default=list, help_text='score at the end of each rung, oldest first'),
        ),
        migrations.CreateModel(
            name='TrialDecision',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('rule', models.CharField(help_text="what decided, for example the search's algorithm", max_length=30)),
                ('rung', models.PositiveIntegerField()),
                ('epoch', models.PositiveIntegerField(null=True)),
                ('value', models.FloatField(null=True)),
                ('saw', models.JSONField(default=dict, help_text='promoted, cutoff, of (number of trials)')),
                ('time', models.DateTimeField(auto_now_add=True)),
                ('trial', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='decisions', to='jobs.trial')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('trial', 'rule', 'rung'), name='one_decision_of_a_rule_and_rung')],
            },
        ),
    ]
