"""Creates registered models, and changes their descriptions, aliases and version cards."""

from django.db import IntegrityError, transaction
from pydantic import TypeAdapter, ValidationError

from jobs import access
from jobs.access import Action
from jobs.actions.audit import audit
from jobs.actions.registry import releases
from jobs.actions.storage import deletions
from jobs.errors import BadInput, Conflict, NotFound, StaleState
from jobs.models import Alias, Endpoint, ModelVersion, Project, RegisteredModel, User
from jobs.queries.registry.registry import is_name_of_another
from jobs.spec.problems import Problem
from jobs.spec.sections.data import Slug

NAME: TypeAdapter[str] = TypeAdapter(Slug)
RESERVED_ALIASES = frozenset({"production", "staging", "previous", "canary", "latest"})
CARD_LIMIT = 100_000
MAX_ALIASES = 16
"""How many aliases a model may have. Prediction servers keep the approved version of each loaded."""


def create_model(project: Project, name: str, *, by: User, description: str = "") -> RegisteredModel:
    """Create a registered model and its endpoint.

    Raises:
        BadInput: the name is not valid in a URL.
        Conflict: another model in the installation has the name.
    """
    access.require(by, project, Action.WRITE)
    _check_name(name, "/name")
    with transaction.atomic():
        deletions.require_present(project)
        model = _new_model(project, name, by=by, description=description)
        if model is None:
            raise Conflict(f"The name {name!r} is taken; model names are unique in the installation.")
    return model


def _new_model(project: Project, name: str, *, by: User | None, description: str) -> RegisteredModel | None:
    """Create the rows inside the caller's transaction. Return None if the name is taken."""
    try:
        # A savepoint: without it, PostgreSQL refuses further statements after the error.
        with transaction.atomic():
            model = RegisteredModel.objects.create(
                project=project, name=name, description=description, created_by=by
            )
    except IntegrityError:
        return None
    # Also without a release, since promotions lock the endpoint's row.
    Endpoint.objects.create(model=model)
    audit.record("model.create", f"model:{name}", by=by, project=project)
    return model


def model_for(project: Project, name: str, *, by: User | None) -> RegisteredModel:
    """Return the project's model with that name. Create it if the name is free.

    Raises:
        Conflict: the name belongs to another project's model.
    """
    named = RegisteredModel.objects.select_related("project").filter(name=name)
    with transaction.atomic():
        model = named.first() or _new_model(project, name, by=by, description="")
        # The name was taken between the two statements, or belongs to a deleted model.
        model = model or RegisteredModel.everything.select_related("project").get(name=name)
    if model.project_id != project.pk:
        raise Conflict(f"The model name {name!r} is taken by another project.", code="name_taken")
    return model


def require_usable_name(project: Project, name: str, *, pointer: str) -> None:
    """Refuse a name under which a project cannot register versions.

    Raises:
        BadInput: the name is not valid in a URL, or a model of another project has it.
    """
    _check_name(name, pointer)
    if is_name_of_another(name, project):
        message = f"the model name {name!r} is taken by another project"
        raise BadInput(message, [Problem(pointer, message)])


def _check_name(name: str, pointer: str) -> None:
    try:
        NAME.validate_python(name)
    except ValidationError as error:
        message = (
            f"{name[:80]!r}: use up to 63 lower-case letters, digits, - and _, with a letter or digit first"
        )
        raise BadInput(message, [Problem(pointer, message)]) from error


def set_description(
    model: RegisteredModel, description: str, *, seen: str | None = None, by: User
) -> RegisteredModel:
    """Set a model's description.

    Args:
        model: the model.
        description: the new text.
        seen: the digest of the description that the caller read; None accepts any.
        by: the acting user.

    Raises:
        StaleState: another description was saved since `seen`. Nothing was changed.
    """
    access.require(by, model.project, Action.WRITE)
    with transaction.atomic():
        # The row of the model orders concurrent changes.
        saved = RegisteredModel.objects.select_for_update(of=("self",), no_key=True).get(pk=model.pk)
        if seen is not None and seen != saved.description_digest:
            raise StaleState(f"The description of {model} was changed in the meantime: read it again.")
        model.description = description
        model.save(update_fields=["description"])
        audit.record("model.describe", f"model:{model.name}", by=by, project=model.project)
    return model


def set_alias(model: RegisteredModel, name: str, version: ModelVersion, *, by: User) -> Alias:
    """Point an alias at a version, moving it if it points elsewhere.

    An approved version's alias is a label on the endpoint: clients may address the version by it.

    Raises:
        BadInput: the name is invalid or reserved, or the model has `MAX_ALIASES` other aliases.
    """
    access.require(by, model.project, Action.WRITE)
    _check_name(name, "/alias")
    if name in RESERVED_ALIASES:
        message = f"{name!r} is reserved for the endpoint; choose another name"
        raise BadInput(message, [Problem("/alias", message)])
    with transaction.atomic():
        # The endpoint's lock comes before the one of the audit log, as in every release.
        endpoint = releases.lock_endpoint(model.endpoint)
        _check_number_of_aliases(model, name)
        alias, _ = Alias.objects.update_or_create(model=model, name=name, defaults={"version": version})
        deletions.require_present(version)
        audit.record(
            "alias.set",
            f"model:{model.name}",
            by=by,
            project=model.project,
            alias=name,
            version=version.number,
        )
        releases.publish_labels(endpoint, version=version, reason=f"alias {name} set", by=by)
    return alias


def _check_number_of_aliases(model: RegisteredModel, name: str) -> None:
    """Refuse one alias more than a model may have. An existing one can always be moved."""
    others = model.aliases.exclude(name=name).count()
    if others < MAX_ALIASES or model.aliases.filter(name=name).exists():
        return
    message = (
        f"{model.name} has {others} aliases, and {MAX_ALIASES} is the limit: "
        "remove one of them, or move one to this version"
    )
    raise BadInput(message, [Problem("/alias", message)])


def delete_alias(model: RegisteredModel, name: str, *, by: User) -> None:
    """Remove an alias.

    Raises:
        NotFound: the model has no alias with that name.
    """
    access.require(by, model.project, Action.WRITE)
    with transaction.atomic():
        endpoint = releases.lock_endpoint(model.endpoint)
        alias = Alias.objects.select_related("version").filter(model=model, name=name).first()
        if alias is None:
            raise NotFound(f"Model {model.name!r} has no alias {name!r}.")
        alias.delete()
        audit.record("alias.delete", f"model:{model.name}", by=by, project=model.project, alias=name)
        releases.publish_labels(endpoint, version=alias.version, reason=f"alias {name} deleted", by=by)


def write_card(version: ModelVersion, text: str, *, seen: str | None = None, by: User) -> ModelVersion:
    """Set the text on a version's card, the only field that users may change in a version.

    Args:
        version: the version.
        text: the card.
        seen: the digest of the card that the caller read; None accepts any.
        by: the acting user.

    Raises:
        StaleState: another card was saved since `seen`. Nothing was changed.
        BadInput: the card is too long.
    """
    access.require(by, version.model.project, Action.WRITE)
    if len(text) > CARD_LIMIT:
        message = f"A card may have at most {CARD_LIMIT:,} characters; this one has {len(text):,}."
        raise BadInput(message, [Problem("/card", message)])
    with transaction.atomic():
        # The row of the version orders concurrent changes.
        saved = ModelVersion.objects.select_for_update(of=("self",), no_key=True).get(pk=version.pk)
        if seen is not None and seen != saved.card_digest:
            raise StaleState(f"The card of {version} was changed in the meantime: read it again.")
        version.card = text
        version.save(update_fields=["card"])
        name = f"version:{version.model.name}/{version.number}"
        audit.record("version.card", name, by=by, project=version.model.project)
    return version
