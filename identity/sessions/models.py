"""The two tables, their statuses, and the sets that the jobs, gauges, dry run and admin share."""

from datetime import datetime
from typing import Self
from uuid import uuid4

from django.db import models
from django.db.models import Exists, OuterRef, Q, Subquery

from identity.sessions import lookups  # noqa: F401 -- registers any_of


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
        child = RefreshSession.objects.filter(parent_session=OuterRef("pk")).values("pk")[:1]
        return self.alias(child=Subquery(child)).filter(child=None)

    def with_children(self) -> Self:
        """Select sessions that another refers to. Past retention these are blocked, and no backlog."""
        return self.filter(Exists(RefreshSession.objects.filter(parent_session=OuterRef("pk"))))


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
