-- Which state of a file a conversation saw last. `place` is the digest of the file's path.
CREATE TABLE seen (
    tenant  TEXT    NOT NULL,
    session TEXT    NOT NULL,
    place   TEXT    NOT NULL,
    version BLOB    NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (tenant, session, place)
) STRICT, WITHOUT ROWID;

CREATE INDEX seen_order ON seen (tenant, session, at, place);
