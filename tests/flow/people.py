"""`python -m tests.flow.people`, in a yard's environment: two people's tokens, as JSON on stdout."""

import json

import django

if __name__ == "__main__":
    django.setup()
    from webapp.demo.people import APPROVER, TRAINER, meet

    print(json.dumps({name: meet(name).token for name in (TRAINER, APPROVER)}))  # noqa: T201
