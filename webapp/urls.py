from django.contrib import admin
from django.urls import path

from webapp import health
from webapp.api.site import api

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/v1/", api.urls),
    path("healthz", health.healthz),
    path("readyz", health.readyz),
]
