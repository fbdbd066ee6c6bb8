"""Who is held up after wrong passwords, and who is not."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core.internal import ratelimit
from django.http import HttpRequest


class RatedAdapter(DefaultAccountAdapter):
    """Wrong passwords are counted for one account from one address, so they lock neither an office nor an owner out.

    A second, wider count for the account alone (`login_failed_anywhere`) bounds guesses from many addresses.
    """

    def _get_login_attempts_cache_key(self, request: HttpRequest, **credentials: Any) -> str:
        account: str = super()._get_login_attempts_cache_key(request, **credentials)
        return f"{account}:{self.get_client_ip(request)}"

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        super().pre_authenticate(request, **credentials)
        account = super()._get_login_attempts_cache_key(request, **credentials)
        anywhere = ratelimit.consume(request, app="allauth.account", action="login_failed_anywhere", key=account)
        if not anywhere:
            raise self.validation_error("too_many_login_attempts")
        # Taken back together when the password is right.
        self._login_failed_rl_usage.usage += anywhere.usage
