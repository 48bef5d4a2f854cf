"""What a damaged or partly understood file did not give: every reader says so in the same form."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Loss:
    """Something that was in the file and was not read: how much of it, where, and why."""

    what: str
    count: int
    where: str = ""
