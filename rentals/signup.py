"""The sign-up form as allauth uses it: account and organization are made together or not at all."""

from allauth.account.forms import SignupForm
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.http import HttpRequest


class TransactionalSignupForm(SignupForm):
    def save(self, request: HttpRequest) -> AbstractBaseUser:
        with transaction.atomic():
            return super().save(request)
