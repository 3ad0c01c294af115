CREATE TABLE sessions (
    tenant   TEXT    NOT NULL,
    session  TEXT    NOT NULL,
    started  INTEGER NOT NULL,
    messages INTEGER NOT NULL DEFAULT 0,
    events   INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, session)
) STRICT, WITHOUT ROWID;

CREATE TABLE messages (
    tenant  TEXT    NOT NULL,
    session TEXT    NOT NULL,
    seq     INTEGER NOT NULL,
    id      BLOB    NOT NULL,
    role    TEXT    NOT NULL CHECK (role IN ('user', 'assistant', 'tool', 'system')),
    content TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    job     BLOB,
    PRIMARY KEY (tenant, session, seq)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX messages_id ON messages (tenant, id);

CREATE TABLE events (
    tenant  TEXT    NOT NULL,
    session TEXT    NOT NULL,
    seq     INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    kind    TEXT    NOT NULL,
    body    TEXT    NOT NULL,
    PRIMARY KEY (tenant, session, seq)
) STRICT, WITHOUT ROWID;
