-- Bytes by their digest, each tenant's apart. Blobs are never changed.
CREATE TABLE blobs (
    tenant TEXT   NOT NULL,
    digest BYTEA  NOT NULL CHECK (length(digest) = 32),
    mime   TEXT   NOT NULL,
    size   BIGINT NOT NULL CHECK (size = length(bytes)),
    at     BIGINT NOT NULL,
    bytes  BYTEA  NOT NULL,
    PRIMARY KEY (tenant, digest)
);

-- The bytes that a tenant holds are added up from this alone.
CREATE INDEX blobs_held ON blobs (tenant, size);
