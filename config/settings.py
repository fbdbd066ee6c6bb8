"""All settings of Berth. Every variable is read from the environment here, once; `.env.example` lists them all.

Safe by default: DEBUG is off, SECRET_KEY has no default outside the demo, cookies are secure outside the demo.
"""

from datetime import timedelta
from pathlib import Path
from typing import Any

import environ
from csp.constants import NONE, SELF
from redis.backoff import NoBackoff
from redis.retry import Retry

from config.log_setup import log_setup

BASE_DIR = Path(__file__).resolve().parent.parent

env = environ.Env()

# --- What this process is -----------------------------------------------------------------------------------------

DEMO = env.bool("DEMO", default=False)
# The demo is complete without a file; one written for a server must not point it at that server's database.
if not DEMO and (BASE_DIR / ".env").exists():
    env.read_env(BASE_DIR / ".env")
DEBUG = env.bool("DEBUG", default=False)
SECRET_KEY = env("SECRET_KEY", default="demo-only-not-a-secret") if DEMO else env("SECRET_KEY")
SECRET_KEY_FALLBACKS = env.list("SECRET_KEY_FALLBACKS", default=[])
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["127.0.0.1", "localhost", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])
SITE_URL = env("SITE_URL", default="http://127.0.0.1:8000").rstrip("/")
HTTPS = env.bool("HTTPS", default=not DEMO)
# How many proxies in front add an X-Forwarded-For entry; 0 = the connection's own address is the client's.
TRUSTED_PROXIES = env.int("TRUSTED_PROXIES", default=0)

# --- Applications -------------------------------------------------------------------------------------------------

INSTALLED_APPS = [
    "rentals.administration.BerthAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.usersessions",
    "csp",
    "django_filters",
    "django_htmx",
    "django_structlog",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "drf_standardized_errors",
    "rest_framework",
    "simple_history",
    "catalog",
    "sizing",
    "rentals",
]

MIDDLEWARE = [
    # First, so that every request has an id, also one that another middleware refuses.
    "django_structlog.middlewares.RequestMiddleware",
    "config.api_frame.AnswerFrame",
    # Around everything that can answer, so that redirects and refusals carry these headers too.
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "django_permissions_policy.PermissionsPolicyMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "config.front.ReadToTheEnd",
    "config.front.KnownMethods",
    "config.front.UnreadBodies",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "config.front.WithoutTracking",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    # Before anything reads a form: the check of its token already would.
    "config.uploads.upload_limit",
    "rentals.scoping.PrivatePages",
    "allauth.account.middleware.AccountMiddleware",
    "allauth.usersessions.middleware.UserSessionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "simple_history.middleware.HistoryRequestMiddleware",
    # Last, so that the page is rendered with everything that the others put on the request.
    "config.errors.MethodNotAllowedPage",
    "config.errors.CacheAwayPage",
    "config.outages.DatabaseAwayPage",
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"

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
                "config.context.site",
                "rentals.context.organizations",
            ],
        },
    },
]

# --- Data ---------------------------------------------------------------------------------------------------------

DATABASES = {"default": env.db_url("DATABASE_URL", default=f"sqlite:///{BASE_DIR / '.data' / 'berth.sqlite3'}")}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
_database = DATABASES["default"]
if _database["ENGINE"] == "django.db.backends.sqlite3":
    _database["OPTIONS"] = {
        # A reader that becomes a writer would fail at once with "database is locked"; IMMEDIATE makes it wait its turn.
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;",
    }
else:
    # lock_timeout bounds how long an order waits for a row: an error a client can retry, never a hung worker.
    # The pool is one of each process: more connections than gunicorn's threads, which would otherwise queue for them.
    # A database that is away is told within seconds, and asked again for as long as somebody wants it: a pool that
    # gave up for minutes would stay away long after the server is back.
    _database["OPTIONS"] = {
        "pool": {"min_size": 1, "max_size": 12, "timeout": 2, "reconnect_timeout": 1},
        "options": "-c lock_timeout=3000",
        "connect_timeout": 2,
        "tcp_user_timeout": 5000,
    }
    # The tables' owner, for `migrate` alone: whoever serves connects as a role that owns nothing.
    if env("DATABASE_OWNER_URL", default=""):
        DATABASES["owner"] = env.db_url("DATABASE_OWNER_URL")

REDIS_URL = env("REDIS_URL", default="")


def redis_cache(url: str) -> dict[str, Any]:
    """A Redis that is stopped or frozen must not hold a request: whoever counts in it goes on without."""
    never_again = Retry(NoBackoff(), 0)
    options = {"socket_connect_timeout": 0.5, "socket_timeout": 0.5, "retry": never_again}
    return {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": url, "OPTIONS": options}


CACHES = {
    "default": redis_cache(REDIS_URL) if REDIS_URL else {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
}

# --- Periodic work ------------------------------------------------------------------------------------------------

CELERY_BROKER_URL = REDIS_URL or "memory://localhost"
CELERY_TASK_ALWAYS_EAGER = not REDIS_URL
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
# A task that hangs is killed, which all of them outlive. No soft limit: its exception would have a mail sent again.
CELERY_TASK_TIME_LIMIT = 600
CELERY_TIMEZONE = "UTC"


def _every(seconds: int, task: str) -> dict[str, Any]:
    """A line of the schedule. A run that no worker took before the next one is due is not needed any more."""
    return {"task": task, "schedule": timedelta(seconds=seconds), "options": {"expires": seconds}}


# The one schedule: Celery beat drives it, or the threads of config/scheduler.py. Intervals, so no clock change matters.
# Mails are rows that a task sends: nothing of a web request waits for the broker or for a mail server.
CELERY_BEAT_SCHEDULE = {
    # Often, because it only looks who is due; a provider's own interval and back-off say when that is.
    "refresh-due-providers": _every(5, "catalog.tasks.refresh_due_providers"),
    "forget-old-runs": _every(3600, "catalog.tasks.forget_old_runs"),
    "forget-unasked-questions": _every(3600, "catalog.tasks.forget_unasked_questions"),
    "forget-gone-machines": _every(3600, "rentals.tasks.forget_gone_machines"),
    "end-due-orders": _every(30, "rentals.tasks.end_due_orders"),
    "announce-ends": _every(60, "rentals.tasks.announce_ends"),
    "send-notices": _every(10, "rentals.tasks.send_notices"),
    "send-webhooks": _every(5, "rentals.tasks.send_webhooks"),
    "tell-of-ends": _every(60, "rentals.tasks.tell_of_ends"),
    "check-saved-searches": _every(30, "rentals.tasks.check_saved_searches"),
    "prune-webhooks": _every(3600, "rentals.tasks.prune_webhooks"),
    "seal-feed-secrets-anew": _every(3600, "catalog.tasks.seal_feed_secrets_anew"),
    "seal-webhook-secrets-anew": _every(3600, "rentals.tasks.seal_webhook_secrets_anew"),
}
# Without Redis there is no worker and no beat: threads of the web process drive the same schedule.
IN_PROCESS_SCHEDULER = env.bool("IN_PROCESS_SCHEDULER", default=not REDIS_URL)

# --- Accounts -----------------------------------------------------------------------------------------------------

AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "home"
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
ACCOUNT_SIGNUP_FORM_CLASS = "rentals.forms.OrganizationSignupForm"
ACCOUNT_ADAPTER = "rentals.accounts.AccountAdapter"
ACCOUNT_USER_DISPLAY = "rentals.accounts.display_name"
ACCOUNT_FORMS = {"signup": "rentals.signup.TransactionalSignupForm"}
ACCOUNT_EMAIL_VERIFICATION = env("ACCOUNT_EMAIL_VERIFICATION", default="none" if DEMO else "mandatory")
# Nowhere does a form tell whether an address has an account; without mandatory verification sign-up alone must.
ACCOUNT_PREVENT_ENUMERATION = True
# `key` is the account with the client's address, `login_failed_anywhere` has the account alone; what is counted by
# address is generous, because an office shares one. All windows of pages are a minute: the 429 page says so.
ACCOUNT_RATE_LIMITS = {
    "login": "120/m/ip",
    "login_failed": "5/300s/key,60/m/ip",
    "login_failed_anywhere": "50/600s/key",
    "signup": "30/m/ip",
}
ACCOUNT_EMAIL_SUBJECT_PREFIX = "[Berth] "
ACCOUNT_DEFAULT_HTTP_PROTOCOL = "https" if HTTPS else "http"
ACCOUNT_SESSION_REMEMBER = True
ALLAUTH_TRUSTED_PROXY_COUNT = TRUSTED_PROXIES
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]

vars().update(env.email_url("EMAIL_URL", default="consolemail://" if DEMO else "smtp://localhost:25"))
# Mail is sent within a request: a server that does not answer must not hold it.
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env("DEFAULT_FROM_EMAIL", default="Berth <berth@localhost>")

# --- Browser security ---------------------------------------------------------------------------------------------

SECURE_SSL_REDIRECT = HTTPS
# Whoever watches the process asks it directly, past the proxy that speaks HTTPS.
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS
SECURE_HSTS_PRELOAD = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if TRUSTED_PROXIES else None
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
CSRF_COOKIE_HTTPONLY = True
CSRF_FAILURE_VIEW = "config.errors.csrf_failure"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "manifest-src": [SELF],
        "form-action": [SELF],
        "base-uri": [SELF],
        "frame-ancestors": [NONE],
    },
}
PERMISSIONS_POLICY: dict[str, list[str]] = {"camera": [], "geolocation": [], "microphone": [], "payment": [], "usb": []}

# --- Pages --------------------------------------------------------------------------------------------------------

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = True
STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
# The demo serves files where they lie; production runs collectstatic once and serves hashed, compressed ones.
WHITENOISE_USE_FINDERS = DEMO or DEBUG
STATIC_ROOT = None if WHITENOISE_USE_FINDERS else BASE_DIR / "staticfiles"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if WHITENOISE_USE_FINDERS
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}

# --- Requests to others -------------------------------------------------------------------------------------------

# Hosts with their ports that feeds and webhooks may reach though their addresses are not public: for development alone.
OUTGOING_ALLOWED = env.list("OUTGOING_ALLOWED", default=[])

# --- API ----------------------------------------------------------------------------------------------------------

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["rentals.authentication.ApiKeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.AllowAny"],
    "DEFAULT_PARSER_CLASSES": ["config.api_parser.StrictJSONParser"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "config.api_parser.JSONAlways",
    "DEFAULT_METADATA_CLASS": "config.api_parser.Methods",
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_THROTTLE_CLASSES": ["rentals.throttling.KeyThrottle", "rentals.throttling.AddressThrottle"],
    "DEFAULT_THROTTLE_RATES": {
        "anon": env("API_ANON_RATE", default="120/min"),
        "key": env("API_KEY_RATE", default="600/min"),
        "wrong_key": env("API_WRONG_KEY_RATE", default="30/min"),
    },
    "EXCEPTION_HANDLER": "config.api_errors.problem_response",
    "UNAUTHENTICATED_USER": None,
    "NUM_PROXIES": TRUSTED_PROXIES,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Berth API",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "DESCRIPTION": (
        "Size a workload, see where it fits, quote and order GPU machines for fixed terms.\n\n"
        "Bodies are JSON in UTF-8, uncompressed; answers are JSON, whatever `Accept` says.\n\n"
        "Money is text in USD, times are RFC 3339 in UTC, memory is integer bytes. Every error is problem details "
        "(RFC 9457) with a stable `code`. Unknown fields and parameters are refused. Lists come in pages: see `next`."
    ),
    "POSTPROCESSING_HOOKS": ["drf_spectacular.hooks.postprocess_schema_enums", "config.api_schema.complete"],
    "SERVE_AUTHENTICATION": [],
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SWAGGER_UI_SETTINGS": {"deepLinking": True, "persistAuthorization": False},
    "ENUM_NAME_OVERRIDES": {
        "Tier": "catalog.models.Tier",
        "MemorySource": "catalog.models.MemorySource",
        "Availability": "catalog.models.Availability",
        "Scope": "rentals.models.api_keys.Scope",
        "EnvironmentPreset": "rentals.models.orders.Environment",
        "OrderStatus": "rentals.models.orders.Status",
        "AllocationState": "rentals.models.orders.Allocation.State",
        "EventKind": "rentals.models.webhooks.EventKind",
        "DeliveryState": "rentals.models.webhooks.WebhookDelivery.State",
        "Role": "rentals.models.organizations.Role",
        "Task": "sizing.forms.TASKS",
        "ModelKind": "sizing.models.AiModel.Kind",
        "ReserveState": "sizing.calculator.words.STATES",
        "StageLoad": "sizing.calculator.words.LOADS",
        "Purpose": "sizing.calculator.words.PURPOSES",
    },
}
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
# A checkpoint may be stored in hundreds of files, each sent with its header. Above the bound of the field, so that the
# form can say what to give instead.
DATA_UPLOAD_MAX_NUMBER_FILES = 1000
# A form with files, all of it. Django keeps small files in memory and writes larger ones to disk as they come in.
UPLOAD_MAX_BYTES = 32 * 1024 * 1024

# --- Logs and metrics ---------------------------------------------------------------------------------------------

# What Prometheus says to read /metrics: Authorization: Bearer <token>. Without one there is no such page.
METRICS_TOKEN = env("METRICS_TOKEN", default="")
LOG_LEVEL = env("LOG_LEVEL", default="INFO")
# A task's lines carry the id of the request that sent it, and one of its own.
DJANGO_STRUCTLOG_CELERY_ENABLED = True
LOGGING = log_setup(LOG_LEVEL, demo=DEMO, for_people=DEMO or DEBUG)
