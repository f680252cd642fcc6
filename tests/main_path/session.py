"""A user who reads and sends an installation's forms, without a browser."""

from html.parser import HTMLParser
from urllib.parse import urljoin

import httpx


class _Fields(HTMLParser):
    """Collects the fields that a page's forms send, each form by its address."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: dict[str, dict[str, str]] = {}
        self._fields: dict[str, str] | None = None
        self._text_of: str | None = None

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        if tag == "form":
            self._fields = self.forms.setdefault(values.get("action", ""), {})
        elif self._fields is None or "name" not in values:
            return
        elif tag == "textarea":
            self._text_of = values["name"]
            self._fields[self._text_of] = ""
        elif tag == "input" and (
            values.get("type") not in ("checkbox", "radio", "file") or "checked" in values
        ):
            self._fields[values["name"]] = values.get("value", "")

    def handle_data(self, data: str) -> None:
        if self._fields is not None and self._text_of is not None:
            self._fields[self._text_of] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._text_of = None
        elif tag == "form":
            self._fields = None


class Session:
    """A logged-in user."""

    def __init__(self, web: str, login_link: str) -> None:
        self._http = httpx.Client(base_url=web, timeout=60, follow_redirects=True)
        self.submit(login_link)

    def close(self) -> None:
        self._http.close()

    def page(self, path: str) -> str:
        """Return a page's text."""
        return self._answer(self._http.get(path)).text

    def submit(self, path: str, form: str = "", **entries: str | list[str]) -> str:
        """Send a page's form. Fields without an entry keep their values.

        Args:
            path: the page.
            form: the form's address; by default the page's.
            entries: the values of fields.

        Returns:
            The path to the page that is shown then.
        """
        fields = _Fields()
        fields.feed(self.page(path))
        url = urljoin(path, form)
        sent = {**fields.forms[form], **entries}
        answer = self._answer(self._http.post(url, data=sent, headers={"Referer": str(self._http.base_url)}))
        return answer.url.path

    def _answer(self, answer: httpx.Response) -> httpx.Response:
        assert answer.is_success, f"{answer.request.method} {answer.url}: {answer.status_code} {answer.text}"
        return answer
