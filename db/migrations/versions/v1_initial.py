"""The schema of the first release. It does nothing: a new store is created from the current tables
(`testbed.db.schema`).

Revision: 1
Revises: nothing
"""

revision = "1"
down_revision = None
branch_labels = None
depends_on = None
