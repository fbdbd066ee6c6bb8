"""Changing how many lots a machine has, without ever losing a lot that is under rent."""

from django.db.models import F

from catalog.models import FeedAbsence, Machine


class LotsUnderRent(Exception):
    """More lots are under rent than the machine would have left.

    Attributes: `wanted` lots, `rented` lots now.
    """

    code = "lots_under_rent"

    def __init__(self, *, wanted: int, rented: int) -> None:
        super().__init__(f"{rented} lots are under rent, so the machine cannot have fewer: {wanted} asked.")
        self.wanted = wanted
        self.rented = rented


def change_lots(machine_id: int, lots: int) -> None:
    """Set the lots of a machine and move `free_lots` by the difference, in one statement that orders cannot cut in two.

    Raises: LotsUnderRent when fewer lots are asked than are under rent.
    """
    moved = Machine.objects.filter(id=machine_id, free_lots__gte=F("lots") - lots).update(
        lots=lots, free_lots=F("free_lots") + lots - F("lots")
    )
    if not moved:
        machine = Machine.objects.get(id=machine_id)
        raise LotsUnderRent(wanted=lots, rented=machine.lots - machine.free_lots)


def lots_beyond_the_list(machine_id: int) -> int:
    """How many lots too many are taken, by what the provider's list offers beside those under rent; 0 when none is.

    Ask with the machine's row held: what is taken then stays, and what the newest list says is read.
    """
    taken = FeedAbsence.objects.filter(machine=machine_id, lots__gt=F("machine__free_lots"))
    return taken.values_list(F("lots") - F("machine__free_lots"), flat=True).first() or 0
