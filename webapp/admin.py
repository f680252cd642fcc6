"""Registers every model with Django's admin, read-only except for promotion requests."""

from django.contrib import admin
from django.db.models import Model

from jobs import models
from webapp.admin_approvals import PromotionRequestAdmin
from webapp.admin_read_only import ReadOnlyAdmin

admin.site.register(models.PromotionRequest, PromotionRequestAdmin)
for _name in models.__all__:
    _model = getattr(models, _name)
    if isinstance(_model, type) and issubclass(_model, Model) and not admin.site.is_registered(_model):
        admin.site.register(_model, ReadOnlyAdmin)
