"""A digest of a row's facts, made by the database itself, whoever writes the row."""

from hashlib import md5
from typing import Any

from django.db.models import BigIntegerField, Expression, F, Func, TextField, Value
from django.db.models.functions import Cast, Coalesce, Round

# In hexadecimal digits: what fits a signed column of eight bytes.
_LENGTH = 15


class Digest(Func):
    """60 bits that tell one list of facts from another: the same on SQLite and PostgreSQL, never negative.

    Facts are joined as text, so only the last may be one that anybody writes. A fact that is null counts as empty.
    MD5 is the one digest that both databases have of themselves or from Django, and nobody gains by forging it.
    """

    function = "BERTH_DIGEST"
    arg_joiner = " || '|' || "
    output_field = BigIntegerField()

    def __init__(self, *facts: Any, **extra: Any) -> None:
        super().__init__(*facts, **extra)
        self.set_source_expressions(
            [Coalesce(Cast(fact, TextField()), Value("")) for fact in self.get_source_expressions()]
        )

    def as_postgresql(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        first = f"('x' || SUBSTR(MD5(%(expressions)s), 1, {_LENGTH}))::bit({4 * _LENGTH})::bigint"
        return super().as_sql(compiler, connection, template=first, **extra)


def cents(field: str) -> Expression:
    """Money with two decimals as whole cents: SQLite keeps it as a float, and writes 110.00 as 110."""
    return Cast(Round(F(field) * Value(100)), BigIntegerField())


def register(sender: object, connection: Any, **unused: Any) -> None:
    """Give a new connection to SQLite the function that PostgreSQL has."""
    if connection.vendor == "sqlite":
        connection.connection.create_function(Digest.function, 1, _digest, deterministic=True)


def _digest(text: str) -> int:
    return int(md5(text.encode(), usedforsecurity=False).hexdigest()[:_LENGTH], 16)
