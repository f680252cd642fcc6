"""The allauth URLs in use: log in, log out, password, second factor. No sign-up, no e-mail."""

from allauth.account import views
from django.urls import include, path

urlpatterns = [
    path("login/", views.login, name="account_login"),
    path("logout/", views.logout, name="account_logout"),
    path("inactive/", views.account_inactive, name="account_inactive"),
    path("reauthenticate/", views.reauthenticate, name="account_reauthenticate"),
    path("password/change/", views.password_change, name="account_change_password"),
    path("password/set/", views.password_set, name="account_set_password"),
    path("2fa/", include("allauth.mfa.urls")),
]
