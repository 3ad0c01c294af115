-- Rules given with a yes; `given` is all that was, the other columns are what is looked for.
CREATE TABLE rules (
    tenant    TEXT    NOT NULL,
    id        BLOB    NOT NULL,
    scope     TEXT    NOT NULL CHECK (scope IN ('session', 'agent', 'tenant')),
    agent     TEXT             CHECK ((agent IS NULL) = (scope = 'tenant')),
    session   TEXT             CHECK ((session IS NULL) = (scope <> 'session')),
    given     TEXT    NOT NULL,
    created   INTEGER NOT NULL,
    expires   INTEGER,
    uses      INTEGER NOT NULL DEFAULT 0,
    last_used INTEGER,
    revoked   INTEGER,
    PRIMARY KEY (tenant, id)
) STRICT;

CREATE INDEX rules_order ON rules (tenant, created, id);
