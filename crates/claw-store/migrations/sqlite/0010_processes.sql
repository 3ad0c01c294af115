-- Background processes; `begun` is all that was said of one, the other columns are what is looked for.
CREATE TABLE processes (
    tenant  TEXT    NOT NULL,
    id      BLOB    NOT NULL,
    session TEXT    NOT NULL,
    node    TEXT    NOT NULL,
    boot    BLOB    NOT NULL,
    begun   TEXT    NOT NULL,
    started INTEGER NOT NULL,
    state   TEXT    NOT NULL CHECK (state IN ('running', 'exited', 'killed', 'lost')),
    code    INTEGER,
    signal  INTEGER,
    ended   INTEGER          CHECK ((ended IS NULL) = (state = 'running')),
    PRIMARY KEY (tenant, id)
) STRICT;

CREATE INDEX processes_session ON processes (tenant, session, started, id);
CREATE INDEX processes_running ON processes (node, boot) WHERE state = 'running';
