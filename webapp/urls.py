from django.contrib import admin
from django.urls import include, path

from webapp import health
from webapp.accounts import admin_entry
from webapp.api.site import api

urlpatterns = [
    # Before the admin's own pages, which would take the password alone.
    *admin_entry.urls,
    path("admin/", admin.site.urls),
    path("accounts/", include("webapp.account_urls")),
    path("api/v1/", api.urls),
    path("healthz", health.healthz),
    path("livez", health.healthz),
    path("readyz", health.readyz),
    path("metrics", health.scrape),
    path("", include("webapp.pages.urls")),
]
handler400 = "webapp.pages.errors.bad_request"
handler403 = "webapp.pages.errors.forbidden"
handler404 = "webapp.pages.errors.not_found"
handler500 = "webapp.pages.errors.server_error"
