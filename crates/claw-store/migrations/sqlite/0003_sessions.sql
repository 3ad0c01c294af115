-- A new message or event takes the number after the last one, so whoever trims a log keeps its last row.
CREATE TABLE messages (
    tenant  TEXT    NOT NULL,
    session TEXT    NOT NULL,
    seq     INTEGER NOT NULL,
    id      BLOB    NOT NULL,
    role    TEXT    NOT NULL CHECK (role IN ('user', 'assistant', 'tool', 'system')),
    content TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    job     BLOB    NOT NULL,
    UNIQUE (tenant, session, seq),
    UNIQUE (tenant, id)
) STRICT;

CREATE TABLE events (
    tenant  TEXT    NOT NULL,
    session TEXT    NOT NULL,
    seq     INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    kind    TEXT    NOT NULL,
    body    TEXT    NOT NULL,
    PRIMARY KEY (tenant, session, seq)
) STRICT, WITHOUT ROWID;
