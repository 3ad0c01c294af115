-- Bytes by their digest, each tenant's apart. Blobs are never changed. The bytes come last, so that they need not be
-- read for the rest.
CREATE TABLE blobs (
    tenant TEXT    NOT NULL,
    digest BLOB    NOT NULL CHECK (length(digest) = 32),
    mime   TEXT    NOT NULL,
    size   INTEGER NOT NULL CHECK (size = length(bytes)),
    at     INTEGER NOT NULL,
    bytes  BLOB    NOT NULL,
    PRIMARY KEY (tenant, digest)
) STRICT;

-- The bytes that a tenant holds are added up from this alone.
CREATE INDEX blobs_held ON blobs (tenant, size);
