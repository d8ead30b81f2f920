"""The demo's users of the admin: one for each thing that a person may be allowed to see."""

from django.contrib.auth.models import Permission, User

from identity.sessions.backoffice.personal import PERMISSION

USERS = {
    "admin": "superuser: sees everything, and may change users, but no row of the two tables",
    "viewer": "may view the backlog and both tables; phone numbers, addresses and user agents are hidden",
    "privacy": "as viewer, and may view personal data",
    "nobody": "staff without any permission",
}


def make_users(password: str) -> None:
    """Make the users, or give them the password and their permissions anew."""
    for name in USERS:
        user, _ = User.objects.get_or_create(username=name)
        user.is_staff, user.is_superuser = True, name == "admin"
        user.set_password(password)
        user.save()
        user.user_permissions.set(permissions(name))


def permissions(name: str) -> list[Permission]:
    """Return the permissions of a user of the demo."""
    everything = Permission.objects.filter(content_type__app_label="identity_sessions", codename__startswith="view_")
    personal = PERMISSION.partition(".")[2]
    if name == "privacy":
        return list(everything)
    return list(everything.exclude(codename=personal)) if name == "viewer" else []
