"""From Launch to an order: the review page, its confirmation, and every way a confirmation can be refused."""

from functools import wraps

from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils import timezone

from rentals import errors
from rentals.differences import in_words
from rentals.models import Organization
from rentals.ordering import Placement, check_inside, digest_of, place_order, placed_before
from rentals.own_models import shapes_of
from rentals.policies import check, check_may_order, policy_of
from rentals.review import Review, new_key, price, read_input
from rentals.review_forms import CARRIED_NAMES, OWN_NAMES, TICKS, expected_total, review_query, unknown_names
from rentals.scoping import TenantRequest, View, opens_transactions, organization_page, reading

_STATUS = {errors.NotPermitted: 403, errors.PolicyViolation: 403, errors.InProgress: 409, errors.Busy: 503}


def keeps_choices_when_signed_out(view: View) -> View:
    """A session that ended before the confirmation costs a sign-in, not the choices."""

    @wraps(view)
    def kept(request: HttpRequest, organization: str) -> HttpResponse:
        if request.method == "POST" and not request.user.is_authenticated:
            return redirect_to_login(f"{request.path}?{review_query(request.POST)}")
        return view(request, organization=organization)

    return kept


@keeps_choices_when_signed_out
@organization_page
@opens_transactions
def order_review(request: TenantRequest) -> HttpResponse:
    if unknown := unknown_names(request.GET):
        known = [*OWN_NAMES[:6], *CARRIED_NAMES]
        return render(request, "rentals/review_unknown.html", {"unknown": unknown, "known": known}, status=400)
    if request.method == "POST" and "update" in request.POST:
        return redirect(f"{request.path}?{review_query(request.POST)}")
    if request.method == "POST":
        return _confirm(request)
    own_models = shapes_of(request.organization)
    # A tick is made on the page: an address cannot say that something was understood.
    asked = QueryDict(mutable=True)
    for name, values in request.GET.lists():
        asked.setlist(name, [] if name in TICKS else values)
    return _show(request, read_input(asked, key=new_key(), now=timezone.now(), own_models=own_models))


def _confirm(request: TenantRequest) -> HttpResponse:
    """The order, or why there is none; who may not order is told that before anything else."""
    with reading(request):
        review = read_input(
            request.POST,
            key=request.POST.get("idempotency_key", ""),
            now=timezone.now(),
            own_models=shapes_of(request.organization),
        )
        try:
            check_may_order(request.membership, policy_of(request.organization))
        except errors.RentalError as error:
            return _refused(request, review, error)
        try:
            expected = expected_total(request.POST.get("expected_total_usd", ""))
        except ValidationError as error:
            review.form.add_error(None, error)
            return _show(request, review, status=400)
        if review.basket is None:
            if before := _placed_before(request, review):
                return _placed(request, before)
            return _show(request, review, status=400)
    try:
        placement = place_order(
            organization=request.organization,
            basket=review.basket,
            idempotency_key=review.key,
            expected_total_usd=expected,
            actor=request.user,
            via="page",
            path=request.path,
            now=review.now,
            size=review.size,
            inside=review.inside,
            sent=_sent(request),
        )
    except errors.RentalError as error:
        with reading(request):
            return _refused(request, review, error)
    return _placed(request, placement)


def _placed(request: TenantRequest, placement: Placement) -> HttpResponse:
    if placement.replayed:
        messages.info(request, f"This order was already placed at {placement.order.starts_at:%H:%M:%S} UTC.")
    else:
        messages.success(request, "The order is placed.")
    return redirect("order", request.organization.slug, placement.order.pk)


def _placed_before(request: TenantRequest, review: Review) -> Placement | None:
    """What the page's form cannot be read for any more: a model may be gone since it was confirmed the first time."""
    return placed_before(
        request.organization, idempotency_key=review.key, sent=_sent(request), actor=request.user, via="page",
        path=request.path, now=review.now,
    )  # fmt: skip


def _sent(request: TenantRequest) -> str:
    """The form without the token, which each page has anew."""
    return digest_of([(name, values) for name, values in request.POST.lists() if name != "csrfmiddlewaretoken"])


def _refused(request: TenantRequest, review: Review, error: errors.RentalError) -> HttpResponse:
    if isinstance(error, errors.IdempotencyMismatch):
        context = {"error": error, "review": review, "differences": in_words(error)}
        return render(request, "rentals/review_key_used.html", context, status=422)
    if isinstance(error, errors.PriceChanged):
        return _show(request, review, status=409, price_changed=error)
    if isinstance(error, errors.SoldOut | errors.OffLine | errors.UnknownMachine):
        context = {"error": error, "review": price(review)}
        return render(request, "rentals/review_gone.html", context, status=409)
    if isinstance(error, errors.OutsideCountries):
        return _outside(request, review)
    if isinstance(error, errors.InvalidKey):
        review.key = new_key()
    if not isinstance(error, errors.PolicyViolation | errors.NotPermitted):
        # The others are told where the button would be, each time the page is shown.
        review.add_error(error)
    return _show(request, review, status=_STATUS.get(type(error), 400))


def _show(request: TenantRequest, review: Review, *, status: int = 200, **context: object) -> HttpResponse:
    try:
        check_inside(review.form.cleaned_data.get("machine", 0), review.inside)
    except errors.OutsideCountries:
        return _outside(request, review)
    policy = policy_of(request.organization)
    price(review)
    if review.offer and review.problem is None:
        try:
            check_may_order(request.membership, policy)
            check(policy, request.organization, review.offer, now=review.now)
        except (errors.PolicyViolation, errors.NotPermitted) as error:
            review.problem = error
    mine = Organization.objects.of_member(request.user).exclude(pk=request.organization.pk)
    context |= {"review": review, "form": review.form, "membership": request.membership, "others": mine}
    return render(request, "rentals/review.html", context, status=status)


def _outside(request: TenantRequest, review: Review) -> HttpResponse:
    """Where the question excludes a machine's country, nothing is told of the machine, its name included."""
    return render(request, "rentals/review_outside.html", {"review": review}, status=409)
