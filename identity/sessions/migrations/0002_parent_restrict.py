from django.db import migrations

# Django's own constraint is deferrable and its RESTRICT lives in Python: a session that another refers to must not be
# deletable by anything, psql included.
ADD = """
    ALTER TABLE refresh_sessions ADD CONSTRAINT fk_refresh_sessions_parent
    FOREIGN KEY (parent_session_id) REFERENCES refresh_sessions (id) ON DELETE RESTRICT NOT DEFERRABLE
"""
DROP = "ALTER TABLE refresh_sessions DROP CONSTRAINT fk_refresh_sessions_parent"


class Migration(migrations.Migration):
    dependencies = [("identity_sessions", "0001_tables")]
    operations = [migrations.RunSQL(ADD, DROP)]
