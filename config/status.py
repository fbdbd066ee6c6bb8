"""The public page that says how old everything is: the providers' lists, and the work in the background."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from catalog.freshness import freshness
from catalog.parameters import without_parameters
from config.periodic import WORDS, periodic_work


@require_safe
@without_parameters
def status(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    everybody, work = freshness(now), periodic_work(now)
    lists = [each for each in everybody if each.has_feed]
    if work is not None:
        work = [each for each in work if each.name in WORDS]
    context = {
        "now": now,
        "lists": lists,
        "declared": len(everybody) - len(lists),
        "stale": sum(not each.fresh for each in lists),
        "work": work,
        "late": sum(not each.on_time for each in work or () if each.age is not None),
        "unseen": sum(each.age is None for each in work or ()),
    }
    return render(request, "status.html", context)
