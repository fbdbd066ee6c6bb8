"""The sign-up form as allauth uses it: account and organization are made together or not at all."""

from allauth.account.adapter import get_adapter
from allauth.account.forms import SignupForm
from allauth.account.models import EmailAddress
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest


class TransactionalSignupForm(SignupForm):
    def validate_unique_email(self, value: str) -> str:
        """An address that somebody merely added to another account, and never confirmed, is free for its owner."""
        if has_account(value):
            return str(super().validate_unique_email(value))
        return str(get_adapter().validate_unique_email(value))

    def save(self, request: HttpRequest) -> AbstractBaseUser:
        with transaction.atomic():
            return super().save(request)


def has_account(email: str) -> bool:
    """Whether an account signs in with this address: as its main one, or as one that it confirmed."""
    main_or_confirmed = Q(primary=True) | Q(verified=True)
    return (
        EmailAddress.objects.filter(main_or_confirmed, email=email.lower()).exists()
        or User.objects.filter(email__iexact=email).exists()
    )
