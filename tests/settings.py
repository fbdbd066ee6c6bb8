"""The settings of the test suite: Berth's own, outside the demo, with everything slow or outgoing taken off.

The environment is set before `config.settings` reads it: a developer's `.env` has no say in the tests, except for the
servers that tests/services.py starts.
"""

import os

os.environ.update(
    DEMO="0",
    DEBUG="0",
    SECRET_KEY="of-the-tests-only",
    HTTPS="0",
    TRUSTED_PROXIES="0",
    ALLOWED_HOSTS="127.0.0.1,localhost,testserver",
    SITE_URL="http://testserver",
    ACCOUNT_EMAIL_VERIFICATION="none",
    EMAIL_URL="memorymail://",
    IN_PROCESS_SCHEDULER="0",
    API_ANON_RATE="1000000/min",
    API_KEY_RATE="1000000/min",
    API_WRONG_KEY_RATE="1000000/min",
    LOG_LEVEL="WARNING",
)
os.environ.setdefault("DATABASE_URL", "sqlite://:memory:")
os.environ.setdefault("DATABASE_OWNER_URL", "")
os.environ.setdefault("REDIS_URL", "")
# The browser driver keeps an event loop in the main thread; Django would refuse the ORM beside it.
os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")

from config.settings import *  # noqa: F403
from config.settings import CACHES, DATABASES, REDIS_URL, STORAGES

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
WHITENOISE_USE_FINDERS = True
STATIC_ROOT = None
CELERY_TASK_ALWAYS_EAGER = True
CELERY_TASK_EAGER_PROPAGATES = True
ACCOUNT_RATE_LIMITS = False  # type: ignore[assignment]

if DATABASES["default"]["ENGINE"].endswith("postgresql"):
    # A hundred buyers are a hundred connections: a small pool would put them in a queue.
    DATABASES["default"]["OPTIONS"]["pool"] = {"min_size": 1, "max_size": 120, "timeout": 60}
if REDIS_URL:
    # One Redis database for each test process, so that clearing the cache of one leaves the others alone.
    _process = int(os.environ.get("PYTEST_XDIST_WORKER", "gw-1").removeprefix("gw")) + 1
    CACHES["default"]["LOCATION"] = f"{REDIS_URL.rsplit('/', 1)[0]}/{_process}"
