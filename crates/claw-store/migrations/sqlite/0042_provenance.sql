-- The run that wrote a document, and whether it had read untrusted text; a removed document keeps both.
ALTER TABLE documents ADD COLUMN run BLOB;
ALTER TABLE documents ADD COLUMN untrusted INTEGER NOT NULL DEFAULT 0;

-- Sessions whose runs read untrusted text. Documents that they write from then on are untrusted.
CREATE TABLE untrusted_sessions (
    tenant  TEXT    NOT NULL,
    session TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (tenant, session)
) STRICT;
