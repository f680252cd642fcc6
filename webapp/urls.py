from django.contrib import admin
from django.urls import include, path

from webapp import health
from webapp.api.site import api

urlpatterns = [
    path("admin/", admin.site.urls),
    path("accounts/", include("webapp.account_urls")),
    path("api/v1/", api.urls),
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("", include("webapp.pages.urls")),
]
handler403 = "webapp.pages.errors.forbidden"
handler404 = "webapp.pages.errors.not_found"
handler500 = "webapp.pages.errors.server_error"
