"""Creates, ends and deletes reservations of slots and GPUs, for the Workers page."""

from django.http import HttpResponse
from django.urls import path

from jobs import access
from jobs.actions.runs import reservations as actions
from jobs.queries.runs import reservations as query
from webapp.forms.runs.reservations import ReservationForm
from webapp.pages.runs.workers import workers_page
from webapp.pages.shortcuts import Request, action, form_page, notify, redirect, redirect_back


@form_page
def reservation_new(request: Request) -> HttpResponse:
    """Keep slots or GPUs for a person or a project; for the installation's administrators."""
    access.require_admin(request.user)
    # A reload of the page of the invalid form, which is at this address, is a GET request.
    if request.method != "POST":
        return redirect("workers")
    form = ReservationForm(request.POST)
    row = form.apply(lambda values: form.save(values, by=request.user))
    if row is None:
        return workers_page(request, form=form, status=form.status)
    notify(request, f"Reserved for {row.holder}.")
    return redirect("workers")


@action
def reservation_end(request: Request, reservation_id: int) -> HttpResponse:
    """End a reservation now."""
    actions.end_reservation(query.get_reservation(reservation_id), by=request.user)
    notify(request, "The reservation has ended.")
    return redirect_back(request, "workers")


@action
def reservation_delete(request: Request, reservation_id: int) -> HttpResponse:
    """Delete a reservation."""
    actions.delete_reservation(query.get_reservation(reservation_id), by=request.user)
    notify(request, "The reservation is deleted.")
    return redirect_back(request, "workers")


urls = [
    path("workers/reservations", reservation_new, name="reservation_new"),
    path("workers/reservations/<int:reservation_id>/end", reservation_end, name="reservation_end"),
    path("workers/reservations/<int:reservation_id>/delete", reservation_delete, name="reservation_delete"),
]
