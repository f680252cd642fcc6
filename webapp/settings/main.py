"""The settings, read top to bottom. Everything that varies comes from the environment (env.py)."""

from pathlib import Path

from django.utils.csp import CSP

from webapp.settings import env

BASE_DIR = Path(__file__).resolve().parents[2]
HOME = env.home()
SECRET_KEY = env.secret_key(HOME)
DEBUG = False
ALLOWED_HOSTS = env.words("TRAINYARD_ALLOWED_HOSTS") or ["localhost", "127.0.0.1", "[::1]"]

INSTALLED_APPS = [
    "django.contrib.admin",
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
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
    "webapp.api.problems.ProblemMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
SECURE_CSP = {"default-src": [CSP.SELF], "img-src": [CSP.SELF, "data:"], "frame-ancestors": [CSP.NONE]}
ROOT_URLCONF = "webapp.urls"
ASGI_APPLICATION = "webapp.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

DATABASES = {"default": env.database(HOME)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_USER_MODEL = "jobs.User"
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "allauth.account.auth_backends.AuthenticationBackend",
]
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]

USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
STATIC_URL = "/static/"
STATIC_ROOT = HOME / "static"

TRAINYARD_HOME = HOME
TRAINYARD_REDIS_URL = env.redis_url(HOME)
TRAINYARD_ARTIFACTS = env.os.environ.get("TRAINYARD_ARTIFACTS") or str(HOME / "artifacts")

# A caller of the REST API may send this many requests a second for long, and so many at once.
TRAINYARD_API_RATE = 50.0
TRAINYARD_API_BURST = 500.0
