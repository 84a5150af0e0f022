"""The schema of the first release. It makes nothing: a new store is made from today's tables (`testbed.db.schema`).

Revision: 1
Revises: nothing
"""

revision = "1"
down_revision = None
branch_labels = None
depends_on = None
