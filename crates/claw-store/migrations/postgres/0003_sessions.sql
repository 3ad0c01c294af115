-- A conversation counts its messages and events; whoever adds one holds this row.
CREATE TABLE sessions (
    tenant   TEXT   NOT NULL,
    session  TEXT   NOT NULL,
    started  BIGINT NOT NULL,
    messages BIGINT NOT NULL DEFAULT 0,
    events   BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, session)
) WITH (fillfactor = 50);

CREATE TABLE messages (
    tenant  TEXT   NOT NULL,
    session TEXT   NOT NULL,
    seq     BIGINT NOT NULL,
    id      UUID   NOT NULL,
    role    TEXT   NOT NULL CHECK (role IN ('user', 'assistant', 'tool', 'system')),
    content JSON   NOT NULL,
    at      BIGINT NOT NULL,
    job     UUID   NOT NULL,
    PRIMARY KEY (tenant, session, seq)
);

CREATE UNIQUE INDEX messages_id ON messages (tenant, id);

CREATE TABLE events (
    tenant  TEXT   NOT NULL,
    session TEXT   NOT NULL,
    seq     BIGINT NOT NULL,
    at      BIGINT NOT NULL,
    kind    TEXT   NOT NULL,
    body    JSON   NOT NULL,
    PRIMARY KEY (tenant, session, seq)
);
