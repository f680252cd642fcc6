"""Replaces Django admin's pages for login, logout and the password by the account's pages."""

from allauth.account import views
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse
from django.views.decorators.cache import never_cache


@never_cache
def login(request: HttpRequest) -> HttpResponse:
    """Lead to the one login page; its password, brake and second factor apply to the admin too."""
    if not request.user.is_authenticated:
        # The login page leads to no other site.
        address = request.GET.get("next") or reverse("admin:index")
        return redirect(reverse("account_login", query={"next": address}))
    if not request.user.is_staff:
        raise PermissionDenied  # not to the login page, which would lead back here
    return redirect("admin:index")


def password_change(request: HttpRequest) -> HttpResponse:  # noqa: ARG001 - a view
    """Lead to the account page, which asks for the old password and ends the other sessions."""
    return redirect("account_change_password")


urls = [
    path("admin/login/", login),
    path("admin/logout/", views.logout),
    path("admin/password_change/", password_change),
]
