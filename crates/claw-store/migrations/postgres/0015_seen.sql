-- Which state of a file a conversation saw last. `place` is the digest of the file's path.
CREATE TABLE seen (
    tenant  TEXT   NOT NULL,
    session TEXT   NOT NULL,
    place   TEXT   NOT NULL,
    version BYTEA  NOT NULL,
    at      BIGINT NOT NULL,
    PRIMARY KEY (tenant, session, place)
);

CREATE INDEX seen_order ON seen (tenant, session, at, place);
