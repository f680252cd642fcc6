"""Stores browser sessions under their keys' hashes (`SESSION_ENGINE`)."""

from typing import Any

from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.db.models import CharField, DateTimeField

from jobs import clock
from jobs.actions import own_installation
from jobs.models.sessions import Session, stored_key
from jobs.prepared import Parameter, PreparedQuery

_UNEXPIRED = PreparedQuery(
    lambda: Session.objects.filter(
        session_key=Parameter("key", CharField()), expire_date__gt=Parameter("now", DateTimeField())
    )
)


class SessionStore(DatabaseStore):
    """Django's store in the database, whose rows have the hash of the key and the user."""

    # Those of Django's store pass the key itself to the database; these call the methods below in a thread.
    aload, asave, acreate = SessionBase.aload, SessionBase.asave, SessionBase.acreate
    aexists, adelete = SessionBase.aexists, SessionBase.adelete

    @classmethod
    def get_model_class(cls) -> type[Session]:
        """Return the rows' model."""
        return Session

    @classmethod
    def clear_expired(cls) -> None:
        """Delete expired sessions."""
        Session.objects.filter(expire_date__lt=clock.now()).delete()

    def load(self) -> dict[str, Any]:
        """Return the session's data; without a row, empty data under a new key."""
        row = None
        if (key := self.session_key) is not None:
            row = _UNEXPIRED.first(key=stored_key(key), now=clock.estimate())
        if row is None:
            # A key that a client has chosen is never used.
            self._session_key = None
            return {}
        return self.decode(row.session_data) or self._decode_with_rotated_key(row.session_data)

    def _decode_with_rotated_key(self, session_data: str) -> dict[str, Any]:
        # Another web server learned first that the secret key was rotated, and has signed the data with it.
        own_installation.follow_key()
        return self.decode(session_data)

    def replace(self, name: str, value: Any) -> None:
        """Change one stored value at once. The session keeps its key and its end, and is not modified.

        Of concurrent changes the others win, since saving all data could take them back.
        """
        self._session[name] = value  # type: ignore[attr-defined]
        row = Session.objects.filter(session_key=stored_key(self.session_key or "")).first()
        if row is not None and (data := self.decode(row.session_data)):
            changed = self.encode({**data, name: value})
            Session.objects.filter(pk=row.pk, session_data=row.session_data).update(session_data=changed)

    def exists(self, session_key: str) -> bool:
        """Return whether a session has this key."""
        return Session.objects.filter(session_key=stored_key(session_key)).exists()

    def delete(self, session_key: str | None = None) -> None:
        """Delete the session with this key; by default this one."""
        if (key := session_key or self.session_key) is not None:
            Session.objects.filter(session_key=stored_key(key)).delete()

    def create_model_instance(self, data: dict[str, Any]) -> Session:
        """Return the row of this session with its new data."""
        user = data.get(SESSION_KEY)
        return Session(
            session_key=stored_key(self._get_or_create_session_key()),  # type: ignore[attr-defined]
            session_data=self.encode(data),
            expire_date=self.get_expiry_date(),
            user_id=int(user) if user else None,
        )
