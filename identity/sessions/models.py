"""The two tables, their statuses, and the sets that the jobs, gauges, dry run and admin share."""

from datetime import datetime
from typing import Self
from uuid import uuid4

from django.db import models
from django.db.models import Exists, OuterRef, Q, Subquery

from identity.sessions import lookups


class RefreshSessionStatus(models.TextChoices):
    ACTIVE = "Active"
    ROTATED = "Rotated"
    REVOKED = "Revoked"
    EXPIRED = "Expired"


class ConfirmationRequestStatus(models.TextChoices):
    PENDING = "Pending"
    CONFIRMED = "Confirmed"
    EXPIRED = "Expired"
    EXHAUSTED = "Exhausted"
    SUPERSEDED = "Superseded"


TERMINAL = [RefreshSessionStatus.ROTATED, RefreshSessionStatus.REVOKED, RefreshSessionStatus.EXPIRED]
# A rotated session has a child by nature, so a chain ends in one of these. The index on tips holds only them.
TIPS = [RefreshSessionStatus.REVOKED, RefreshSessionStatus.EXPIRED]
# What is blanked on a session that must stay.
PERSONAL_DATA = Q(ip_address__isnull=False) | ~Q(user_agent="")

# From every old session with a child that stays, up along its parents. UNION meets each only once, so cycles end too.
# LATERAL with OFFSET keeps it a chain of index look-ups: as a plain join the planner hashes the whole table, each time.
KEPT = """
    WITH RECURSIVE kept (id, parent_session_id) AS (
        SELECT s.id, s.parent_session_id FROM refresh_sessions s
        WHERE s.status = ANY(%s) AND s.updated_at < %s AND EXISTS (
            SELECT FROM refresh_sessions child
            WHERE child.parent_session_id = s.id AND NOT (child.status = ANY(%s) AND child.updated_at < %s))
        UNION
        SELECT parent.id, parent.parent_session_id
        FROM kept CROSS JOIN LATERAL (
            SELECT s.id, s.parent_session_id FROM refresh_sessions s
            WHERE s.id = kept.parent_session_id AND s.status = ANY(%s) AND s.updated_at < %s OFFSET 0
        ) parent
    )
    SELECT id FROM kept
"""


def kept_by_a_descendant(cutoff: datetime) -> lookups.AmongIds:
    """Return the condition that a live or younger descendant keeps a session that is past retention."""
    return lookups.AmongIds(KEPT, [TERMINAL, cutoff] * 3)


class RefreshSessionQuerySet(models.QuerySet["RefreshSession"]):
    """Sets of refresh sessions; each is given its moment, none reads a clock."""

    def due(self, now: datetime) -> Self:
        """Select what has run out and is not Expired yet."""
        return self.filter(status=RefreshSessionStatus.ACTIVE, expires_at__lte=now)

    def older_than(self, cutoff: datetime) -> Self:
        """Select terminal sessions past retention, whether or not something still refers to them."""
        return self.filter(status__in=TERMINAL, updated_at__lt=cutoff)

    def tips(self) -> Self:
        """Select sessions in which a rotation chain can end for good."""
        return self.filter(status__in=TIPS)

    def childless(self) -> Self:
        """Select sessions that no other refers to: only these can be deleted under RESTRICT."""
        return self.filter(~Exists(RefreshSession.objects.filter(parent_session=OuterRef("pk"))))

    def childless_by_lookup(self) -> Self:
        """Select the same as `childless`, a look-up in the index for each row: for a set of few.

        A join in its place would have the planner read the whole table for the children of one batch.
        """
        return self.with_child().filter(child=None)

    def with_child(self) -> Self:
        """Add `child`, the id of some session that refers to this one, or null."""
        child = RefreshSession.objects.filter(parent_session=OuterRef("pk")).values("pk")[:1]
        return self.alias(child=Subquery(child))

    def ends(self) -> Self:
        """Select sessions that no later one refers to: childless ones, and at least one of each cycle."""
        children = RefreshSession.objects.filter(parent_session=OuterRef("pk"))
        later = Q(updated_at__gt=OuterRef("updated_at")) | Q(updated_at=OuterRef("updated_at"), pk__gt=OuterRef("pk"))
        return self.filter(~Exists(children.filter(later)))

    def with_personal_data(self) -> Self:
        return self.filter(PERSONAL_DATA)

    def blocked(self, cutoff: datetime) -> Self:
        """Select sessions past retention that a live or younger descendant keeps: these are no backlog."""
        return self.older_than(cutoff).filter(kept_by_a_descendant(cutoff))

    def to_delete(self, cutoff: datetime) -> Self:
        """Select sessions past retention of which every descendant is past retention too: the rest of the old ones.

        A cycle of sessions is among them when all of it is old and no other session keeps it.
        """
        return self.older_than(cutoff).exclude(kept_by_a_descendant(cutoff))


class ConfirmationRequestQuerySet(models.QuerySet["SignInConfirmationRequest"]):
    """Sets of confirmation requests; each is given its moment, none reads a clock."""

    def due(self, now: datetime) -> Self:
        """Select what has run out and is not Expired yet."""
        return self.filter(status=ConfirmationRequestStatus.PENDING, expires_at__lte=now)

    def older_than(self, cutoff: datetime) -> Self:
        """Select requests past retention, of any status: after so long all are inert."""
        return self.filter(created_at__lt=cutoff)


class RefreshSession(models.Model):
    """A device's session. Rotation makes a child and leaves this one Rotated, so sessions form chains."""

    id = models.UUIDField(primary_key=True, default=uuid4)
    user_id = models.UUIDField()
    # The constraint is the database's own (migration 0002): Django's is deferrable and its RESTRICT lives in Python.
    parent_session = models.ForeignKey(
        "self", models.DO_NOTHING, null=True, related_name="children", db_constraint=False, db_index=False
    )
    status = models.CharField(max_length=16, choices=RefreshSessionStatus)
    token_hash = models.CharField(max_length=128)
    created_at = models.DateTimeField()
    # The moment of the last transition. Expiry leaves it alone: see docs/decisions.
    updated_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    revoked_reason = models.CharField(max_length=64, null=True)  # noqa: DJ001 -- the contract's column is nullable
    ip_address = models.GenericIPAddressField(null=True)
    user_agent = models.TextField()

    objects = RefreshSessionQuerySet.as_manager()

    class Meta:
        db_table = "refresh_sessions"
        # One permission for both tables: who may see phone numbers, addresses and user agents in the admin.
        permissions = [("view_personal_data", "Can view personal data")]
        indexes = [
            models.Index(
                fields=["expires_at"],
                name="ix_refresh_sessions_expires_at",
                condition=Q(status=RefreshSessionStatus.ACTIVE),
            ),
            models.Index(fields=["user_id"], name="ix_refresh_sessions_user_id"),
            models.Index(fields=["parent_session"], name="ix_refresh_sessions_parent_id"),
            models.Index(fields=["updated_at"], name="ix_refresh_sessions_tips", condition=Q(status__in=TIPS)),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(status__in=RefreshSessionStatus.values), name="ck_refresh_sessions_status"
            )
        ]

    def __str__(self) -> str:
        return str(self.id)


class SignInConfirmationRequest(models.Model):
    """A code sent to a phone to confirm a sign-in ("SICR"); it lives five minutes."""

    id = models.UUIDField(primary_key=True, default=uuid4)
    user_id = models.UUIDField(null=True)
    phone_number = models.CharField(max_length=32)
    code_hash = models.CharField(max_length=128)
    status = models.CharField(max_length=16, choices=ConfirmationRequestStatus)
    attempts = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    confirmed_at = models.DateTimeField(null=True)
    ip_address = models.GenericIPAddressField(null=True)
    user_agent = models.TextField()

    objects = ConfirmationRequestQuerySet.as_manager()

    class Meta:
        db_table = "sign_in_confirmation_requests"
        indexes = [
            models.Index(
                fields=["expires_at"],
                name="ix_sicr_expires_at",
                condition=Q(status=ConfirmationRequestStatus.PENDING),
            ),
            models.Index(fields=["created_at"], name="ix_sicr_created_at"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(status__in=ConfirmationRequestStatus.values), name="ck_sicr_status")
        ]

    def __str__(self) -> str:
        return str(self.id)


class Backlog(RefreshSession):
    """What waits for the jobs: a name for the admin's page about both tables, and for the permission to view it."""

    class Meta:
        proxy = True
        default_permissions = ("view",)
        verbose_name_plural = "backlog"
