"""The rights at routes: each route and verb in use, by the smallest group of users that may use it.

All else is refused to everyone. `test_every_role.py` tries all routes, verbs and roles, and
prints what to change here after a route was added, changed or removed.
"""

# Open without a login.
EVERYONE = """
GET POST PUT /accounts/login/
GET /accounts/inactive/
GET /api/v1/openapi.json
GET /api/v1/docs
GET /healthz
GET /livez
GET /readyz
GET /account/session
"""

# Every person who is logged in: their own things, and lists of the rows that they may see.
PEOPLE = """
PATCH DELETE /accounts/login/
GET POST /accounts/logout/
GET POST PUT /accounts/reauthenticate/
GET POST PUT /accounts/password/change/
GET POST PUT PATCH DELETE /accounts/password/set/
GET /api/v1/me
GET /api/v1/users
GET POST /api/v1/projects
GET /api/v1/datasets
GET /api/v1/code
GET POST /api/v1/uploads
GET /api/v1/experiments
GET /api/v1/precision
POST /api/v1/search-spaces/import
POST /api/v1/search-spaces/export
GET /api/v1/deletions
GET /api/v1/comparison
GET /api/v1/comparison/curves
GET /api/v1/jobs
GET /api/v1/models
GET /api/v1/promotions
GET /api/v1/endpoints
GET /api/v1/serving/access
GET /api/v1/storage
GET /api/v1/queue/pools
GET /api/v1/workers
GET /api/v1/reservations
GET /api/v1/workers/<worker_id>
GET POST /api/v1/tokens
GET /api/v1/settings
GET /api/v1/audit
GET /
GET /account/
POST /account/end-sessions
GET /search
GET /docs
GET /docs/developers
GET POST /mesh
GET /projects
GET POST /projects/new
GET /compare
POST /projects/choose
GET /jobs
GET POST /jobs/orders
GET /queue
GET /models
GET POST /models/new
GET /approvals
GET /endpoints
GET /datasets
GET /datasets/new
POST /datasets/sample
GET /code
GET /help/trainyard_report.py
GET /code/new
GET /storage
GET /workers
GET /workers/<int:worker_id>
GET POST /tokens
POST /needs/dismiss
POST /needs/restore
GET /audit
GET /audit/export.csv
"""

# Every member of the project, whatever the role.
VIEWERS = """
GET /api/v1/projects/<slug>
GET /api/v1/projects/<slug>/members
GET /api/v1/projects/<slug>/quotas
GET /api/v1/projects/<slug>/sandbox
GET /api/v1/datasets/<slug>
GET /api/v1/datasets/<slug>/versions
GET /api/v1/datasets/<slug>/versions/<number>
GET /api/v1/datasets/<slug>/versions/<number>/preview
GET /api/v1/datasets/<slug>/versions/<number>/overview
GET /api/v1/datasets/<slug>/versions/<number>/split-overview
GET /api/v1/code/<code>
GET /api/v1/code/<code>/files
GET /api/v1/code/<code>/environment
GET /api/v1/code/<code>/data
GET /api/v1/code/<code>/text
GET /api/v1/code/<code>/differences
POST /api/v1/experiments/validate
GET /api/v1/experiments/<id>
GET /api/v1/experiments/<id>/revisions
GET /api/v1/jobs/<int:job_id>/trials
GET /api/v1/jobs/<int:job_id>/trials/<int:number>
GET /api/v1/jobs/<int:job_id>/trials/columns
GET /api/v1/jobs/<int:job_id>/timeline
GET /api/v1/jobs/<int:job_id>/importance
GET /api/v1/jobs/<int:job_id>/trials.csv
GET /api/v1/jobs/<int:job_id>/metrics.csv
GET /api/v1/jobs/<int:job_id>/reports
GET /api/v1/models/<name>/versions/<number>/packages
GET /api/v1/models/<name>/versions/<number>/reports
GET /api/v1/jobs/<int:job_id>/answer
GET /api/v1/jobs/<int:job_id>
GET /api/v1/jobs/<int:job_id>/artifacts
GET /api/v1/jobs/<int:job_id>/checkpoints
GET /api/v1/jobs/<int:job_id>/attempts
GET /api/v1/jobs/<int:job_id>/shardings
GET /api/v1/jobs/<int:job_id>/metrics
GET /api/v1/jobs/<int:job_id>/events
GET /api/v1/jobs/<int:job_id>/logs
GET /api/v1/models/<name>
GET /api/v1/models/<name>/gates
GET /api/v1/models/<name>/versions
GET /api/v1/models/<name>/versions/<number>
GET /api/v1/models/<name>/history
GET /api/v1/promotions/<promotion_id>
POST /api/v1/promotions/<promotion_id>/comment
GET /api/v1/endpoints/<name>
GET /api/v1/endpoints/<name>/traffic
GET /p/<slug:project>/
GET /p/<slug:project>/settings
GET /p/<slug:project>/experiments
GET /p/<slug:project>/experiments/<int:id>
GET /p/<slug:project>/mesh-estimate
GET /p/<slug:project>/precision
GET /jobs/<int:job_id>/trials/<int:number>
GET /jobs/<int:job_id>
GET /models/<slug:name>
GET /models/<slug:name>/versions/<int:number>
GET /models/<slug:name>/gates
GET /approvals/<int:promotion_id>
GET /approvals/<int:promotion_id>/approve
GET /approvals/<int:promotion_id>/reject
GET /approvals/<int:promotion_id>/withdraw
GET POST /approvals/<int:promotion_id>/comment
GET /endpoints/<slug:name>
GET /datasets/<slug:slug>
GET /datasets/<slug:slug>/versions/<int:number>
GET /datasets/<slug:slug>/versions/<int:number>/split
GET /code/<slug:code>
GET /code/<slug:code>/compare
"""

# Those who may write in the project.
MEMBERS = """
GET /api/v1/projects/<slug>/credentials
POST /api/v1/datasets
POST /api/v1/code
POST /api/v1/datasets/<slug>/versions
POST /api/v1/datasets/<slug>/versions/<number>/split-overview
POST /api/v1/datasets/<slug>/versions/<number>/fetch
POST /api/v1/datasets/<slug>/versions/<number>/fetch/cancel
POST /api/v1/datasets/<slug>/versions/<number>/read
POST /api/v1/datasets/<slug>/versions/<number>/offers/<position>
POST /api/v1/code/<code>/definitions
POST /api/v1/jobs/<int:job_id>/revise
POST /api/v1/jobs/<int:job_id>/ensemble
POST /api/v1/jobs/<int:job_id>/trials
POST /api/v1/experiments
POST /api/v1/experiments/find-model
POST /api/v1/experiments/dry-run
POST /api/v1/experiments/mesh-estimates
PATCH /api/v1/experiments/<id>
POST /api/v1/experiments/<id>/submit
POST /api/v1/experiments/<id>/clone
POST /api/v1/jobs/<int:job_id>/trials/<int:number>/retry
POST /api/v1/jobs/<int:job_id>/trials/<int:number>/again
POST /api/v1/jobs/<int:job_id>/trials/<int:number>/train
POST /api/v1/jobs/<int:job_id>/trials/<int:number>/continue
POST /api/v1/jobs/<int:job_id>/repeat
POST /api/v1/jobs/<int:job_id>/narrow
PATCH /api/v1/jobs/<int:job_id>
POST /api/v1/jobs/<int:job_id>/<command>
POST /api/v1/models
PATCH /api/v1/models/<name>
PATCH /api/v1/models/<name>/versions/<number>
POST /api/v1/models/<name>/versions/<number>/describe
POST /api/v1/models/<name>/versions/<number>/quantize
POST /api/v1/models/<name>/versions/<number>/cast
PUT /api/v1/models/<name>/aliases/<alias>
POST /api/v1/promotions
GET POST /p/<slug:project>/experiments/<int:id>/submit
POST /p/<slug:project>/experiments/<int:id>/clone
POST /p/<slug:project>/experiments/<int:id>/archive
POST /p/<slug:project>/experiments/<int:id>/unarchive
GET POST /p/<slug:project>/experiments/<int:id>/notes
GET POST /p/<slug:project>/experiments/new
GET POST /p/<slug:project>/find-model
POST /p/<slug:project>/mesh-estimate
GET /p/<slug:project>/experiments/columns
GET POST /p/<slug:project>/experiments/<int:id>/edit
GET POST /jobs/<int:job_id>/trials
GET POST /jobs/<int:job_id>/ensemble
GET POST /jobs/<int:job_id>/trials/<int:number>/again
GET POST /jobs/<int:job_id>/trials/<int:number>/train
GET POST /jobs/<int:job_id>/trials/<int:number>/continue
POST /jobs/<int:job_id>/trials/<int:number>/retry
GET POST /jobs/<int:job_id>/revise
POST /jobs/<int:job_id>/revise/preview
GET POST /jobs/<int:job_id>/repeat
GET POST /jobs/<int:job_id>/narrow
GET POST /jobs/<int:job_id>/trials/<int:number>/register
GET POST /jobs/<int:job_id>/artifacts/<slug:digest>/register
GET POST /jobs/<int:job_id>/clone
POST /jobs/<int:job_id>/<slug:what>
POST /queue/<int:job_id>/change
POST /models/<slug:name>/upload
GET POST /models/<slug:name>/aliases
GET POST /models/<slug:name>/versions/<int:number>/promote
GET POST /models/<slug:name>/versions/<int:number>/card
POST /models/<slug:name>/versions/<int:number>/describe
GET POST /models/<slug:name>/versions/<int:number>/smaller
POST /datasets/<slug:slug>/versions/<int:number>/split
POST /datasets/<slug:slug>/versions/<int:number>/roles
POST /datasets/<slug:slug>/versions/<int:number>/again
POST /datasets/<slug:slug>/versions/<int:number>/gaps
POST /datasets/<slug:slug>/versions/<int:number>/offers
POST /datasets/<slug:slug>/versions/<int:number>/offers/<int:position>
GET POST /code/<slug:code>/edit
POST /code/<slug:code>/definitions
POST /datasets/<slug:slug>/versions/<int:number>/cancel
"""

# The person who made the object, and administrators of the project.
AUTHORS = """
GET PATCH DELETE /api/v1/uploads/<upload_id>
DELETE /api/v1/datasets/<slug>
DELETE /api/v1/code/<code>
GET /api/v1/code/<code>/deletion
DELETE /api/v1/experiments/<id>
GET /api/v1/datasets/<slug>/deletion
GET /api/v1/experiments/<id>/deletion
GET /api/v1/jobs/<int:job_id>/deletion
DELETE /api/v1/jobs/<int:job_id>
POST /api/v1/promotions/<promotion_id>/withdraw
GET POST /delete/<slug:deletable>/<int:target>
POST /deletions/<int:deletion_id>/undo
POST /approvals/<int:promotion_id>/withdraw
"""

# Those who decide releases.
APPROVERS = """
PUT /api/v1/models/<name>/gates
POST /api/v1/models/<name>/rollback
POST /api/v1/promotions/<promotion_id>/reject
PATCH /api/v1/endpoints/<name>
POST /api/v1/endpoints/<name>/down
POST /api/v1/endpoints/<name>/up
POST /models/<slug:name>/gates
POST /approvals/<int:promotion_id>/reject
GET POST /models/<slug:name>/rollback
GET POST /models/<slug:name>/down
POST /models/<slug:name>/up
"""

# The administrators of the project.
OWNERS = """
POST /api/v1/reservations/<reservation_id>/end
POST /workers/reservations/<int:reservation_id>/end
PUT /api/v1/projects/<slug>/credentials/<name>
GET POST /p/<slug:project>/credentials/new
POST /p/<slug:project>/settings
DELETE /api/v1/projects/<slug>
PUT /api/v1/projects/<slug>/members
DELETE /api/v1/projects/<slug>/members/<username>
GET /api/v1/projects/<slug>/deletion
GET /api/v1/models/<name>/versions/<number>/deletion
DELETE /api/v1/models/<name>/versions/<number>
DELETE /api/v1/tokens/<token_id>
GET POST /p/<slug:project>/invite
GET POST /p/<slug:project>/members
GET POST /p/<slug:project>/members/<str:username>/remove
POST /tokens/<int:token_id>/revoke
"""

# The administrators of the installation.
ADMINISTRATORS = """
POST /api/v1/users
PATCH /api/v1/users/<username>
GET /api/v1/users/<username>/departure
GET /api/v1/tokens/all
POST /api/v1/tokens/<token_id>/hand-over
PATCH /api/v1/projects/<slug>
PATCH /api/v1/projects/<slug>/quotas
PATCH /api/v1/projects/<slug>/sandbox
PATCH /api/v1/settings
GET POST /settings
GET POST /p/<slug:project>/network
GET POST /p/<slug:project>/quotas
POST /api/v1/workers/<worker_id>/drain
POST /api/v1/workers/<worker_id>/enable
PATCH /api/v1/queue/pools/<pool>
POST /api/v1/reservations
DELETE /api/v1/reservations/<reservation_id>
GET /api/v1/audit/verify
GET /styleguide
POST /workers/<int:worker_id>/drain
POST /workers/<int:worker_id>/enable
POST /workers/pools/<slug:pool>/preemption
GET POST /workers/reservations
POST /workers/reservations/<int:reservation_id>/delete
GET POST /people
POST /people/<str:username>/link
GET POST /p/<slug:project>/members/<str:username>/link
POST /people/<str:username>/active
POST /people/<str:username>/slots
GET POST /people/<str:username>/departure
POST /people/<str:username>/admin
GET /audit/verify
"""

# Absent for everyone here: nothing is deleted, the link is unknown, a field names no object, the demo is off.
NOBODY = """
GET /metrics
DELETE /api/v1/projects/<slug>/credentials/<name>
POST /p/<slug:project>/credentials/<slug:name>/delete
POST /api/v1/projects/<slug>/restore
POST /api/v1/datasets/<slug>/restore
POST /api/v1/code/<code>/restore
POST /api/v1/experiments/<id>/restore
POST /api/v1/jobs/<int:job_id>/restore
POST /api/v1/models/<name>/versions/<number>/restore
GET /api/v1/artifacts/<digest>
POST /api/v1/models/<name>/versions
DELETE /api/v1/models/<name>/aliases/<alias>
POST /api/v1/promotions/<promotion_id>/approve
GET POST PUT PATCH DELETE /api/v1/
GET POST /login/<str:secret>
GET /docs/<path:name>
POST /jobs/<int:job_id>/kill-runner
POST /models/<slug:name>/aliases/<slug:alias>/delete
POST /models/<slug:name>/versions/<int:number>/predict
POST /approvals/<int:promotion_id>/approve
POST /datasets/new
POST /code/new
"""

# People who may run their own code.
TRAINERS = """
POST /api/v1/code/<code>/dry-builds
POST /api/v1/code/<code>/data
POST /api/v1/code/<code>/environment
POST /api/v1/code/<code>/environment/resolve
POST /code/<slug:code>/data
POST /code/<slug:code>/install
POST /code/<slug:code>/resolve
GET POST /p/<slug:project>/code/<slug:code>/run
"""

GROUPS = {
    "nobody": (NOBODY, ()),
    "administrators": (ADMINISTRATORS, ("administrator",)),
    "owners": (OWNERS, ("owner", "administrator")),
    "approvers": (APPROVERS, ("approver", "owner", "administrator")),
    "authors": (AUTHORS, ("member", "owner", "administrator")),
    "trainers": (TRAINERS, ("trainer", "owner", "administrator")),
    "members": (MEMBERS, ("member", "trainer", "owner", "administrator")),
    "viewers": (VIEWERS, ("viewer", "member", "trainer", "approver", "owner", "administrator")),
    "people": (
        PEOPLE,
        ("stranger", "viewer", "member", "trainer", "approver", "owner", "administrator"),
    ),
    "everyone": (
        EVERYONE,
        ("anonymous", "stranger", "viewer", "member", "trainer", "approver", "owner", "administrator"),
    ),
}


def table() -> dict[tuple[str, str], str]:
    """Return each verb and route's group."""
    rows: dict[tuple[str, str], str] = {}
    for group, (text, _) in GROUPS.items():
        for line in text.strip().splitlines():
            *verbs, route = line.split()
            for verb in verbs:
                assert (verb, route) not in rows, f"{verb} {route} is listed twice"
                rows[verb, route] = group
    return rows


# No person and no token of a person: only the credential of a prediction server.
OF_SERVERS = ("GET /serving/releases", "POST /serving/access", "POST /serving/reports")
READ_BY_SERVERS = {*OF_SERVERS, "GET /me", "GET /artifacts/{digest}"}
"""All that the credential of a prediction server is for."""

# Scopes of tokens: the contract's rule is `read` for GET and `write` for everything else; these differ.
SCOPES = {
    "GET /me": "read write approve predict admin worker metrics",
    "GET /artifacts/{digest}": "read",
    "GET /audit": "read admin",
    "GET /audit/verify": "admin",
    "GET /users": "read admin",
    "POST /users": "admin",
    "GET /users/{username}/departure": "admin",
    "GET /tokens/all": "admin",
    "POST /tokens/{token_id}/hand-over": "admin",
    "PATCH /projects/{slug}/quotas": "admin",
    "PATCH /projects/{slug}/sandbox": "admin",
    "PATCH /settings": "admin",
    "GET /queue/pools": "read admin",
    "GET /workers": "read admin",
    "GET /workers/{worker_id}": "read admin",
    "PATCH /queue/pools/{pool}": "admin",
    "POST /reservations": "admin",
    "POST /reservations/{reservation_id}/end": "write admin",
    "DELETE /reservations/{reservation_id}": "write admin",
    "POST /workers/{worker_id}/drain": "admin",
    "POST /workers/{worker_id}/enable": "admin",
    "PATCH /endpoints/{name}": "approve",
    "POST /endpoints/{name}/down": "approve",
    "POST /endpoints/{name}/up": "approve",
    "PUT /models/{name}/gates": "approve",
    "POST /models/{name}/rollback": "approve",
    "POST /promotions/{promotion_id}/approve": "approve",
    "POST /promotions/{promotion_id}/reject": "approve",
    "POST /promotions/{promotion_id}/comment": "write approve",
    "GET /serving/access": "predict metrics",
    **dict.fromkeys(OF_SERVERS, ""),
    "PATCH /users/{username}": "admin",
}
