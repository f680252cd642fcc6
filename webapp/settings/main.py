"""Django's settings. Values that vary by installation come from environment variables (env.py)."""

import re
from pathlib import Path
from urllib.parse import urlsplit

from django.utils.csp import CSP

from jobs import program
from jobs.logs.lines import logging_settings
from jobs.spec.data.file_limits import DEFAULT_LIMITS
from transport.admission import LOOPBACK
from webapp.settings import databases, env, places, public_address

env.settle_variables()
BASE_DIR = program.ROOT
HOME = places.home()
TRAINYARD_SECRET_KEYS = places.secret_keys(HOME)
SECRET_KEY = TRAINYARD_SECRET_KEYS.present
SECRET_KEY_FALLBACKS = TRAINYARD_SECRET_KEYS.verifying()
# Workers on other machines have none: they cannot sign sessions, tokens or rows of the audit log.
TRAINYARD_SECRET_KEY_FILE = places.secret_key_file(HOME)
TRAINYARD_HAS_KEY = bool(SECRET_KEY)
DEBUG = env.flag("TRAINYARD_DEBUG")
PUBLIC_URL = public_address.public_url()
# The path of the public address, such as /trainyard: every address that the dashboard writes begins with it.
PUBLIC_PATH = urlsplit(PUBLIC_URL).path
FORCE_SCRIPT_NAME = PUBLIC_PATH or None
TRAINYARD_DEMO = public_address.demo(PUBLIC_URL)
# With a public address of https://, cookies, redirects and HSTS require TLS.
SECURE = PUBLIC_URL.startswith("https://")
public_address.check_serving_url()
ALLOWED_HOSTS = public_address.allowed_hosts(PUBLIC_URL)

INSTALLED_APPS = [
    "webapp.apps.AdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "channels",
    "ninja",
    "jobs",
    "webapp",
]
MIDDLEWARE = [
    # First, so that its time includes all others.
    "webapp.middleware.request_log",
    # Above all that look at the host.
    "webapp.middleware.probes_by_address",
    "django.middleware.security.SecurityMiddleware",
    "webapp.assets.StaticFiles",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
    "webapp.middleware.permissions_policy",
    "webapp.middleware.private_responses",
    # Above those that answer requests themselves, such as CSRF, so that their errors become problems too.
    "webapp.api.problems.ProblemMiddleware",
    "webapp.accounts.session_cookie.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "webapp.accounts.session_user.AuthenticationMiddleware",
    "webapp.middleware.login_issuers",
    "allauth.account.middleware.AccountMiddleware",
    "webapp.accounts.delay.status_of_delay",
    "webapp.accounts.requirement.second_factor_required",
    "webapp.reservations.release_upload",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    # Last: it needs the user, and the check of CSRF, which reads the form, comes after all of these.
    "webapp.pages.form_encoding.forms_in_utf8",
]
ROOT_URLCONF = "webapp.urls"
ASGI_APPLICATION = "webapp.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [program.resource_folder("templates")],
        "APP_DIRS": True,
        "OPTIONS": {
            "builtins": [
                "django.templatetags.static",
                "webapp.templatetags.trainyard",
                "webapp.templatetags.form_fields",
                "webapp.templatetags.list_filters",
                "webapp.templatetags.value_filters",
                "webapp.templatetags.model_reports",
                "webapp.templatetags.architecture",
            ],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "webapp.context.frame",
            ],
        },
    }
]

DATABASES = {"default": databases.database(HOME)}
TRAINYARD_UPGRADE_WITHOUT_COPY = env.flag("TRAINYARD_UPGRADE_WITHOUT_COPY")
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- People ---------------------------------------------------------------------------------------
AUTH_USER_MODEL = "jobs.User"
AUTHENTICATION_BACKENDS = ["webapp.accounts.login.Backend"]
PASSWORD_HASHERS = [
    "webapp.accounts.hashing.Argon2",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}", "OPTIONS": options}
    for name, options in (
        ("UserAttributeSimilarityValidator", {}),
        ("MinimumLengthValidator", {"min_length": 10}),
        ("CommonPasswordValidator", {}),
    )
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "account_login"
ACCOUNT_ADAPTER = "webapp.accounts.adapter.Adapter"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_SESSION_REMEMBER = True
# Those of allauth count in the memory of one process; `jobs.actions.people.logins` counts in the database.
ACCOUNT_RATE_LIMITS = False
ACCOUNT_FORMS = {"change_password": "webapp.accounts.forms.PasswordForm"}
MFA_FORMS = {
    "authenticate": "webapp.accounts.forms.CodeForm",
    "reauthenticate": "webapp.accounts.forms.ConfirmCodeForm",
}
MFA_ADAPTER = "webapp.accounts.second_factor.Adapter"
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
MFA_TOTP_ISSUER = "Trainyard"
# Approvers and administrators without one can only set it up.
TRAINYARD_REQUIRE_SECOND_FACTOR = env.flag("TRAINYARD_REQUIRE_SECOND_FACTOR", default=SECURE)

# --- Cookies: two installations on one host must not log each other out -----------------------------
# `webapp.accounts.cookie_names` adds the installation to the names, once the database is known.
COOKIE_PATH = PUBLIC_PATH or "/"
_PREFIX = ("__Secure-" if PUBLIC_PATH else "__Host-") if SECURE else ""
SESSION_COOKIE_NAME = f"{_PREFIX}session"
SESSION_COOKIE_PATH = CSRF_COOKIE_PATH = COOKIE_PATH
SESSION_ENGINE = "jobs.session_store"
SESSION_COOKIE_AGE = 14 * 24 * 3600
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = SECURE
CSRF_COOKIE_NAME = f"{_PREFIX}csrf"
# The end of the names of all cookies: which installation has set them. Empty until it is known.
TRAINYARD_COOKIE_SUFFIX = ""
# Scripts read the token from the page's head instead.
CSRF_COOKIE_HTTPONLY = True
CSRF_COOKIE_SECURE = SECURE
CSRF_FAILURE_VIEW = "webapp.pages.errors.csrf_failure"
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL.removesuffix(PUBLIC_PATH)] if PUBLIC_URL else []
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"

# --- Browser security -------------------------------------------------------------------------------
SECURE_CSP = {
    "default-src": [CSP.SELF],
    # Tabler draws its check marks with data: images, and pages of data sets show samples as such.
    "img-src": [CSP.SELF, "data:"],
    "object-src": [CSP.NONE],
    "base-uri": [CSP.NONE],
    "form-action": [CSP.SELF],
    "frame-ancestors": [CSP.NONE],
}
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SECURE_SSL_REDIRECT = SECURE
# Requested without the proxy, by monitors and prediction servers.
_PLACE = re.escape(f"{PUBLIC_PATH}/"[1:])
SECURE_REDIRECT_EXEMPT = [
    rf"^{_PLACE}(healthz|livez|readyz|metrics)$",
    rf"^{_PLACE}api/v1/(me$|serving/|artifacts/)",
]
# The server takes the scheme from X-Forwarded-Proto, of the proxies in TRAINYARD_TRUSTED_PROXIES alone.
SECURE_PROXY_SSL_HEADER = None
SECURE_HSTS_SECONDS = 365 * 24 * 3600 if SECURE else 0
# A host with other pages has subdomains of others.
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE and not PUBLIC_PATH
# W021 asks for HSTS preload: it covers a whole domain, which the owner of the domain decides.
SILENCED_SYSTEM_CHECKS = ["security.W021", *(["security.W005"] if PUBLIC_PATH else [])]

# --- Texts, times, files ----------------------------------------------------------------------------
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
STATIC_URL = f"{PUBLIC_PATH}/static/"
# In production `webapp.ops.static_files` builds hashed, compressed copies in a folder below it.
STATIC_ROOT = HOME / "static"
# WhiteNoise warns at each start if it is missing.
if places.makes_files():
    STATIC_ROOT.mkdir(exist_ok=True)
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "webapp.assets.ModuleManifestStorage"
        if SECURE
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}
# In production the hashed and compressed copies are served; otherwise the source files.
WHITENOISE_USE_FINDERS = not SECURE
WHITENOISE_MAX_AGE = 60
LOGGING_CONFIG = "jobs.logs.lines.configure"
LOGGING = logging_settings(as_json=env.flag("TRAINYARD_LOG_JSON", default=SECURE))
# The share of requests with a line in the log; failed and slow ones always have one.
TRAINYARD_ACCESS_LOG = env.share("TRAINYARD_ACCESS_LOG", 1.0 if SECURE else 0.0)

TRAINYARD_HOME = HOME
TRAINYARD_PUBLIC_URL = PUBLIC_URL
TRAINYARD_REDIS_URL = places.redis_url(HOME)
TRAINYARD_ARTIFACTS = places.artifacts(HOME)
# Of copies of files in object storage, and of checkpoints of finished jobs, on each machine.
TRAINYARD_ARTIFACT_CACHE_BYTES = env.whole_number(
    "TRAINYARD_ARTIFACT_CACHE_BYTES", 20 * 2**30, of="bytes", least=0
)
TRAINYARD_MAX_UPLOAD_BYTES = env.whole_number("TRAINYARD_MAX_UPLOAD_BYTES", 2**30, of="bytes")
# Hosts that are not on the public network, and folders of this machine, from which data may be fetched.
TRAINYARD_FETCH_ALLOW = env.hosts_and_ports("TRAINYARD_FETCH_ALLOW")
_OWN_FILES = [HOME, TRAINYARD_SECRET_KEY_FILE, BASE_DIR]
if "://" not in TRAINYARD_ARTIFACTS:
    _OWN_FILES.append(Path(TRAINYARD_ARTIFACTS))
if str(DATABASES["default"]["ENGINE"]).endswith("sqlite3"):
    _OWN_FILES.append(Path(str(DATABASES["default"]["NAME"])))
TRAINYARD_DATA_ROOTS = places.data_roots(_OWN_FILES)
# Of an upload in parts, whose bytes are written to their place at once.
TRAINYARD_MAX_RESUMABLE_BYTES = env.whole_number("TRAINYARD_MAX_RESUMABLE_BYTES", 20 * 2**30, of="bytes")
# Workers read this variable too. 0 uses the disk to its end.
TRAINYARD_MIN_FREE_BYTES = env.whole_number("TRAINYARD_MIN_FREE_BYTES", 2**30, of="bytes", least=0)
# Open connections of the web server: in all, and from one address. Loopback addresses may be proxies.
TRAINYARD_MAX_CONNECTIONS = env.whole_number("TRAINYARD_MAX_CONNECTIONS", 4096)
TRAINYARD_MAX_CONNECTIONS_PER_ADDRESS = env.whole_number("TRAINYARD_MAX_CONNECTIONS_PER_ADDRESS", 256)
TRAINYARD_TRUSTED_PROXIES = env.networks("TRAINYARD_TRUSTED_PROXIES", LOOPBACK)
# Limits of an upload in the memory of the worker that reads it.
TRAINYARD_MAX_EXPANDED_BYTES = env.whole_number(
    "TRAINYARD_MAX_EXPANDED_BYTES", DEFAULT_LIMITS.expanded_bytes, of="bytes"
)
# Of a large table, which is read in parts. Its columns, encoded, may have as many bytes.
TRAINYARD_MAX_TABLE_BYTES = env.whole_number(
    "TRAINYARD_MAX_TABLE_BYTES", DEFAULT_LIMITS.table_bytes, of="bytes"
)
# Quotas of projects for which administrators set no others: the bytes of its files and events, its unfinished
# jobs, its uploads in progress, and the events of its runs a second.
TRAINYARD_PROJECT_BYTES = env.whole_number("TRAINYARD_PROJECT_BYTES", 100 * 10**9, of="bytes")
TRAINYARD_PROJECT_JOBS = env.whole_number("TRAINYARD_PROJECT_JOBS", 1000, of="jobs")
TRAINYARD_PROJECT_UPLOADS = env.whole_number("TRAINYARD_PROJECT_UPLOADS", 100, of="uploads")
TRAINYARD_PROJECT_EVENTS_PER_SECOND = env.whole_number(
    "TRAINYARD_PROJECT_EVENTS_PER_SECOND", 250_000, of="events a second"
)

# Limits for each client of the REST API: sustained requests per second, and burst size.
TRAINYARD_API_RATE = 50.0
TRAINYARD_API_BURST = 500.0
